"""Attempts that lead nowhere: loops without a new durable step, and what repeats in them."""

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headway.incidents.evidence import Failure
from headway.incidents.model import PLANNED
from headway.ledger import Ledger

LOOP = 3
"""Attempts without a new durable step that make a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Consecutive attempts without a new durable step; `end` in ns, None while it goes on."""

    attempts: int
    first_attempt: int
    last_attempt: int
    start: int
    end: int | None


def progress_times(ledger: Ledger) -> list[int]:
    """Return when a durable checkpoint held more steps than all before it, in ns."""
    times = []
    highest = -1
    durable = (save for save in ledger.book.saves if save.is_durable)
    for save in sorted(durable, key=lambda save: (save.durable_since or 0, save.step)):
        if save.step > highest and save.durable_since is not None:
            highest = save.step
            times.append(save.durable_since)
    return times


def _groups(ledger: Ledger) -> list[list[int]]:
    """Return the attempts begun between two durable steps, the stretch after the last included."""
    times = progress_times(ledger)
    groups: list[list[int]] = [[] for _ in range(len(times) + 1)]
    for position, attempt in enumerate(ledger.book.attempts):
        groups[bisect_right(times, attempt.begin)].append(position)
    return groups


def attempts_without_durable_step(ledger: Ledger) -> int:
    """Return the attempts begun since a durable checkpoint last held more than all before it.

    Example: a checkpoint of step 500 is durable; three attempts resume from it and die: 3.
    """
    return len(_groups(ledger)[-1])


def loops(ledger: Ledger) -> list[Loop]:
    """Return the stretches of at least `LOOP` attempts without a new durable step."""
    times = progress_times(ledger)
    attempts = ledger.book.attempts
    return [
        Loop(
            attempts=len(group),
            first_attempt=attempts[group[0]].number,
            last_attempt=attempts[group[-1]].number,
            start=attempts[group[0]].begin,
            end=times[index] if index < len(times) else ledger.end,
        )
        for index, group in enumerate(_groups(ledger))
        if len(group) >= LOOP
    ]


def streaks(failures: Mapping[int, Failure]) -> dict[int, dict[str, int]]:
    """Return for each broken attempt what it shares with those just before it, and how many.

    What counts is the suspected rank, node and GPU, the checkpoint it had started from, and the
    signature of the fault.
    """
    found: dict[int, dict[str, int]] = {}
    before: dict[str, tuple[object, int]] = {}
    for position, one in sorted(failures.items()):
        now = {
            "rank": one.verdict.rank,
            "node": one.verdict.node,
            "gpu": one.verdict.gpu,
            "checkpoint": one.checkpoint,
            "signature": one.verdict.signature,
        }
        following: dict[str, tuple[object, int]] = {}
        for what, value in now.items():
            if value is not None:
                last, count = before.get(what, (None, 0))
                following[what] = (value, count + 1 if last == value else 1)
        before = following
        found[position] = {what: count for what, (_, count) in before.items() if count > 1}
    return found


def alike(failures: Mapping[int, Failure], only: Collection[str]) -> int:
    """Return how many breaks in a row share something, at most; 1 if none does, 0 without any.

    A stop that was announced is no break. That a run broke on its `only` rank or node says nothing.
    """
    broken = {p: one for p, one in failures.items() if one.verdict.cause not in PLANNED}
    telling = (
        count
        for shared in streaks(broken).values()
        for what, count in shared.items()
        if what not in only
    )
    return max(telling, default=min(len(broken), 1))
