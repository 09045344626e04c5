"""What the time of an incident went to, per attempt; overlaps cannot count twice.

Each attempt to recover owns the stretch from the fault before it to its own: so the phases of the
incident are the sums of its attempts', and they are cut from the ledger's partition.
"""

from collections.abc import Iterable, Mapping, Sequence

from headway.incidents.evidence import Failure
from headway.incidents.model import PHASES, Try
from headway.incidents.reading import Reading


def tries(
    reading: Reading,
    failures: Mapping[int, Failure],
    positions: Sequence[int],
    opened: int,
    until: int,
) -> tuple[Try, ...]:
    """Return the attempts to recover after the one that broke first.

    `positions` are the incident's attempts, `until` is when its recompute ends.
    """
    found: list[Try] = []
    start = opened
    for position in positions[1:]:
        found.append(_try(reading, failures.get(position), position, start, until))
        start = found[-1].end
    return tuple(found)


def united(tries: Iterable[Try]) -> dict[str, int]:
    """Sum the phases of attempts that follow each other."""
    found = dict.fromkeys(PHASES, 0)
    for one in tries:
        for name, amount in one.phases.items():
            found[name] += amount
    return found


def split(reading: Reading, start: int, end: int) -> dict[str, int]:
    """Split the time between a fault and the next first step by what it was spent on."""
    found = dict.fromkeys(PHASES, 0)
    for (category, part), amount in reading.ledger.amounts(start, end).items():
        if category == "stalled":
            found["detect"] += amount
        elif category == "down":
            found["wait"] += amount
        elif category == "checkpoint_load" or part == "load_failed":
            found["load"] += amount
        elif part == "teardown" or category == "checkpoint_save":
            found["teardown"] += amount
        else:
            found["start"] += amount
    return found


def _try(reading: Reading, broke: Failure | None, position: int, start: int, until: int) -> Try:
    account = reading.accounts[position]
    attempt, steps = account.attempt, account.steps
    last = position == len(reading.accounts) - 1
    closed_at = reading.ledger.closed_at
    if broke is not None:
        end = max(start, broke.opened if steps is not None else attempt.end)
    else:
        end = closed_at
    if not last:
        end = min(end, max(start, reading.accounts[position + 1].attempt.begin))
    if steps is None:
        phases = split(reading, start, closed_at if last else end)
        formed = attempt.world_size is None or len(attempt.ranks) >= attempt.world_size
        outcome = "no_step" if formed else "never_formed"
    else:
        begun = max(start, int(steps.begin[0]))
        end = max(begun, end)
        phases = split(reading, start, begun)
        phases["recompute"] = max(min(until, end) - begun, 0)
        outcome = "progressed"
    return Try(
        attempt=attempt.identity,
        number=attempt.number,
        layer=attempt.layer,
        start=start,
        end=end,
        outcome=outcome,
        resumed=account.segments[0].base if account.segments else None,
        checkpoint=account.segments[0].checkpoint if account.segments else None,
        cause=None if broke is None else broke.verdict.cause,
        suspect_rank=None if broke is None else broke.verdict.rank,
        phases=phases,
    )
