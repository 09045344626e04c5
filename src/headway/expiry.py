"""Which raw step records of a run may go, and what is kept of them instead.

Kept in full are the newest steps of each attempt, its first ones, its longest, and every step that
was executed more than once. Before anything goes the report is computed from what would be left:
it must be the same. Pure: it knows no clock and no database.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headway import wire
from headway.events import Envelope, Steps, StepsSummary
from headway.incidents.finding import BEYOND
from headway.ledger import Ledger, Timeline
from headway.ledger.account import Account
from headway.ledger.attempts import Attempt
from headway.ledger.frozen import can_freeze, freeze
from headway.ledger.growth import OVERLAP
from headway.ledger.longest import Longest
from headway.ledger.segments import FrozenSegment
from headway.report import report

FIRST_KEPT = 2
"""First steps of an attempt that are kept."""
MOVING = ("arrival",)
"""Parts of a report that depend on where a window cuts the steps of the past."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """Records to be removed, the parts of them that stay, and the segments that replace them.

    `same` is whether the report stays as it was; else nothing may be removed.
    """

    removed: Sequence[Envelope]
    kept: Sequence[Envelope]
    segments: Sequence[FrozenSegment]
    same: bool


def expiry(
    run: str,
    envelopes: Sequence[Envelope],
    segments: Sequence[FrozenSegment],
    *,
    until: int,
    as_of: int,
) -> Expiry | None:
    """Return what of a run's steps that ended by `until` can go; None if nothing can.

    `envelopes` and `segments` are all that is stored of it; times are in UTC ns.
    """
    timeline = _timeline(run, envelopes, segments)
    ledger = timeline.ledger(as_of)
    saves = {save.step for save in ledger.book.saves}
    marks = _marks(ledger)
    removed: list[Envelope] = []
    kept: list[Envelope] = []
    new: list[FrozenSegment] = []
    for account in ledger.book.accounts:
        steps, attempt = account.steps, account.attempt
        if steps is None or account.shared:
            continue
        done = timeline.frozen(attempt.identity)
        after = can_freeze(steps, attempt, until, done, saves)
        if after <= done:
            continue
        needed = _needed(ledger, account, int(steps.number[after - OVERLAP]))
        gone = [
            (envelope, parts)
            for envelope in timeline.step_records(attempt.identity)
            if (parts := _parts(envelope, needed)) != [envelope]
        ]
        if gone:
            new += freeze(steps, attempt, done, after, saves, marks)
            removed += [envelope for envelope, _ in gone]
            kept += [part for _, parts in gone for part in parts]
    if not removed:
        return None
    out = {(envelope.producer, envelope.first_sequence) for envelope in removed}
    left = [e for e in envelopes if (e.producer, e.first_sequence) not in out]
    rest = _timeline(run, [*left, *kept], [*segments, *new]).ledger(as_of)
    same = _lasting(report(rest)) == _lasting(report(ledger))
    return Expiry(removed=removed, kept=kept, segments=new, same=same)


def _timeline(
    run: str, envelopes: Iterable[Envelope], segments: Iterable[FrozenSegment]
) -> Timeline:
    timeline = Timeline(run)
    timeline.add_segments(segments)
    timeline.add(envelopes)
    return timeline


def _lasting(whole: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in whole.items() if name not in MOVING}


def _marks(ledger: Ledger) -> set[int]:
    """Return the steps of which an incident asks when they were done: those that catch up."""
    highest = 0
    found = set()
    for account in ledger.book.accounts:
        if account.steps is not None:
            highest = max(highest, int(account.steps.number[-1]))
            found |= {highest, highest + BEYOND}
    return found


@dataclass(frozen=True, slots=True)
class _Needed:
    """Step numbers whose raw records stay: those from `since` on, and within `ranges`."""

    since: int
    ranges: Sequence[tuple[int, int]]

    def mask(self, number: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return for step numbers of shape (n,) whether they stay."""
        found = number >= self.since
        for first, last in self.ranges:
            found |= (number >= first) & (number <= last)
        return found


def _needed(ledger: Ledger, account: Account, since: int) -> _Needed:
    steps, attempt = account.steps, account.attempt
    if steps is None:
        return _Needed(since, ())
    first, last = int(steps.number[0]), int(steps.number[-1])
    ranges = [(first, first + FIRST_KEPT - 1)]
    for longest in attempt.longest.values():
        ranges += _steps_of(attempt, longest)
    for other in ledger.book.accounts:
        if other is not account and other.steps is not None:
            low, high = int(other.steps.number[0]), int(other.steps.number[-1])
            if low <= last and high >= first:
                # the last step of the state resumed from tells how many samples it had consumed
                ranges.append((low - 1, high))
    return _Needed(since, ranges)


def _steps_of(attempt: Attempt, longest: Longest) -> list[tuple[int, int]]:
    """Return the steps whose own raw records tell of the longest interval of a phase."""
    begin, end = longest.start, longest.start + longest.duration
    found = []
    for rows in attempt.ranks[longest.rank].rows:
        near = rows.number[(rows.end >= begin) & (rows.start - rows.data_wait <= end)]
        if 0 < len(near) <= OVERLAP:  # what lies outside of the steps spans many of them
            found.append((int(near[0]), int(near[-1])))
    return found


def _parts(envelope: Envelope, needed: _Needed) -> list[Envelope]:
    """Return what stays of a record of steps."""
    event = envelope.event
    if isinstance(event, Steps):
        count = envelope.last_sequence - envelope.first_sequence + 1
    elif isinstance(event, StepsSummary):
        count = event.num_steps
    else:
        return [envelope]
    mask = needed.mask(np.arange(event.first_step, event.first_step + count, dtype=np.int64))
    if mask.all() or (isinstance(event, StepsSummary) and mask.any()):
        return [envelope]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    first = envelope.first_sequence
    return [
        wire.trim(envelope, first + low, first + high - 1)
        for low, high in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    ]
