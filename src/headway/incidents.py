"""Incidents: from a fault until an attempt holds (rule 29), with their phases and rollback.

An incident closes when a checkpoint scheduled after the resume is durable or ten steps beyond the
old highest are done; a fault before that joins it.
"""

import hashlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from headway.causes import Evidence, Verdict, decide, of_exit, of_fault, of_stop
from headway.ledger import Ledger
from headway.ledger.account import Account
from headway.ledger.breakage import fault_start, is_breakage
from headway.ledger.checkpoints import Checkpoint
from headway.ledger.lineage import parent_of

BEYOND = 10
"""Steps beyond the old highest with which an incident closes."""
PHASES = ("detect", "teardown", "wait", "start", "load", "recompute")
"""Phases of an incident in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One incident; times in UTC ns, durations in ns, `None` where it has not come to that."""

    incident: str
    number: int
    opened: int
    closed: int | None
    recovered: int | None
    caught_up: int | None
    cause: str
    rule: str
    layer: str | None
    suspect_rank: int | None
    suspect_node: str | None
    rollback_steps: int | None
    rollback: int | None
    attempts: tuple[str, ...]
    phases: dict[str, int] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()


class _Reading:
    """A ledger with what every incident asks of it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.accounts = ledger.book.accounts
        self._highest = list(accumulate((_highest(account) for account in self.accounts), max))
        self.saves: dict[str | None, list[Checkpoint]] = defaultdict(list)
        for save in ledger.book.saves:
            self.saves[save.attempt].append(save)
        self.segments = [segment.attempt for segment in ledger.book.chain]

    def highest(self, position: int) -> int:
        """Return the highest step completed up to and with an attempt."""
        return self._highest[position]


def incidents(ledger: Ledger) -> list[Incident]:
    """Return the incidents of a run in order of time."""
    found: list[Incident] = []
    reading = _Reading(ledger)
    position = 0
    while position < len(reading.accounts):
        if not _breaks(ledger, position):
            position += 1
            continue
        last, closed = _until_held(reading, position)
        found.append(_incident(reading, len(found) + 1, position, last, closed))
        position = max(last, position + 1)
    return found


def restarts(ledger: Ledger, known: Sequence[Incident]) -> dict[str, dict[str, int]]:
    """Count the attempts after the first by the layer that started them and by cause."""
    causes = {attempt: incident.cause for incident in known for attempt in incident.attempts[1:]}
    counts: dict[str, dict[str, int]] = {}
    for attempt in ledger.book.attempts[1:]:
        cause = causes.get(attempt.identity, "unknown")
        layer = counts.setdefault(attempt.layer, {})
        layer[cause] = layer.get(cause, 0) + 1
    return {layer: dict(sorted(by.items())) for layer, by in sorted(counts.items())}


def _breaks(ledger: Ledger, position: int) -> bool:
    """Whether an attempt did not end the run and did not simply go on."""
    account = ledger.book.accounts[position]
    following = position + 1 < len(ledger.book.accounts)
    if following or account.broken.fault is not None:
        return True
    if ledger.state in ("completed", "stopped"):
        return False
    return bool(account.attempt.stops and account.attempt.exits) or (
        account.steps is None and account.attempt.ended
    )


def _until_held(reading: _Reading, first: int) -> tuple[int, int | None]:
    """Return the last attempt of the incident that broke attempt `first`, and when it closed."""
    for position in range(first + 1, len(reading.accounts)):
        closed = _closing_time(reading, position, reading.highest(first))
        if closed is not None:
            return position, closed
    return len(reading.accounts) - 1, None


def _closing_time(reading: _Reading, position: int, highest: int) -> int | None:
    account = reading.accounts[position]
    steps = account.steps
    if steps is None:
        return None
    times = []
    beyond = np.flatnonzero(steps.number >= highest + BEYOND)
    if len(beyond):
        times.append(int(steps.end[beyond[0]]))
    begun = int(steps.begin[0])
    for save in reading.saves[account.attempt.identity]:
        if (
            save.finalized is not None
            and save.scheduled is not None
            and save.scheduled >= begun
            and save.tier != "memory"
        ):
            times.append(save.finalized)
    return min(times, default=None)


def _highest(account: Account) -> int:
    return 0 if account.steps is None else int(account.steps.number.max())


def _incident(
    reading: _Reading, number: int, first: int, last: int, closed: int | None
) -> Incident:
    ledger, accounts = reading.ledger, reading.accounts
    broken, held = accounts[first], accounts[last]
    evidence = _evidence(broken)
    opened = broken.broken.fault
    if opened is None:
        opened = min((item.began for item in evidence), default=broken.broken.done)
    verdict = decide(evidence, at_start=broken.steps is None)
    highest = reading.highest(first)
    steps = held.steps if last > first else None
    recovered = None if steps is None else int(steps.end[0])
    caught_up = None
    rollback = _rollback(reading, first, last, highest) if steps is not None else None
    if steps is not None and rollback is not None:
        again = np.flatnonzero(steps.number >= highest)
        if rollback[0] <= 0:
            caught_up = recovered
        elif len(again):
            caught_up = int(steps.end[again[0]])
    return Incident(
        incident=_identity(ledger.run, broken.attempt.identity),
        number=number,
        opened=opened,
        closed=closed,
        recovered=recovered,
        caught_up=caught_up,
        cause=verdict.cause,
        rule=verdict.rule,
        layer=held.attempt.layer if last > first else None,
        suspect_rank=verdict.rank,
        suspect_node=_node(broken, verdict),
        rollback_steps=None if rollback is None else rollback[0],
        rollback=None if rollback is None else rollback[1],
        attempts=tuple(account.attempt.identity for account in accounts[first : last + 1]),
        phases=_phases(ledger, opened, held if last > first else None, caught_up),
        evidence=tuple(item.words for item in evidence),
    )


def _identity(run: str, attempt: str) -> str:
    return hashlib.sha256(f"{run}\n{attempt}".encode()).hexdigest()[:12]


def _silent_since(account: Account) -> int:
    return account.attempt.begin if account.steps is None else account.steps.last_end


def _node(account: Account, verdict: Verdict) -> str | None:
    if verdict.node is not None or verdict.rank is None:
        return verdict.node
    log = account.attempt.ranks.get(verdict.rank)
    return None if log is None else log.node


def _evidence(account: Account) -> list[Evidence]:
    """Return what was observed of an attempt's end, first fault first."""
    attempt, since = account.attempt, _silent_since(account)
    found = []
    for time, rank, fault in attempt.faults:
        if time >= since:
            log = attempt.ranks.get(rank) if rank is not None else None
            node = None if log is None else log.node
            own = fault_start(time, fault, since)
            began = account.broken.done if own is None else own
            found.append(of_fault(time, began, rank, node, fault))
    for time, rank, exit_ in attempt.exits:
        if time >= since and is_breakage(exit_):
            found.append(of_exit(time, account.broken.done, rank, attempt.ranks[rank].node, exit_))
    if attempt.exits:
        found += [of_stop(max(time, since), stop) for time, stop in attempt.stops]
    return sorted(found, key=lambda item: (item.began, item.time, item.words))


def _rollback(reading: _Reading, first: int, last: int, highest: int) -> tuple[int, int] | None:
    """Return steps and time of what the incident discarded.

    The steps are the highest before it minus those in the restored state; the time is what they
    took on the chain that was the newest state before it.
    """
    book = reading.ledger.book
    restored = reading.accounts[last].segments
    if not restored:
        return None
    base = restored[0].base
    time = 0
    limit = None
    before = bisect_right(reading.segments, first)
    position = before - 1 if before else None
    while position is not None:
        segment = book.chain[position]
        steps = book.accounts[segment.attempt].steps
        if steps is not None:
            time += reading.accounts[segment.attempt].work_of(segment.index, base, limit)
        limit = segment.base if limit is None else min(limit, segment.base)
        if limit <= base:
            break
        position = parent_of(position, limit, book.chain, book.attempts, book.saves_by_identity)
    return max(highest - base, 0), time


def _phases(
    ledger: Ledger, opened: int, held: Account | None, caught_up: int | None
) -> dict[str, int]:
    """Split the incident's time up to its first new step by what it was spent on."""
    steps = None if held is None else held.steps
    begun = ledger.closed_at if steps is None else int(steps.begin[0])
    found = dict.fromkeys(PHASES, 0)
    for (category, part), amount in ledger.amounts(opened, begun).items():
        if category == "stalled":
            found["detect"] += amount
        elif category == "down":
            found["wait"] += amount
        elif category == "checkpoint_load" or part == "load_failed":
            found["load"] += amount
        elif part == "teardown":
            found["teardown"] += amount
        else:
            found["start"] += amount
    if steps is not None:
        until = ledger.closed_at if caught_up is None else caught_up
        found["recompute"] = max(until - begun, 0)
    return found
