"""The steps of one rank within its attempt, with the phases around and inside them.

The innermost phase owns its time (rule 14). A phase that encloses a whole step lies outside it, so
the step is the inner one; a phase that only crosses a step's edge lies inside.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np

from headway.ledger.attempts import Attempt, Phase, RankLog
from headway.ledger.pieces import Piece, Span, innermost, is_carved, length, merge, without
from headway.ledger.steps import StepRows, Times, joined

EARLIEST = np.iinfo(np.int64).min


@dataclass(slots=True)
class Detail:
    """One step piece by piece: gap before it, the step itself, and what owns the rest."""

    start: int
    gap: list[Span]
    step: list[Span]
    pieces: list[Piece]

    @property
    def outside(self) -> int:
        """Time in ns that the rank did not spend in the step."""
        return length(self.gap) + sum(piece.end - piece.start for piece in self.pieces)


@dataclass(slots=True)
class RankSteps:
    """Columns of one rank's steps: shape (n,), int64, ns; `index` is the group's step."""

    log: RankLog
    slices: list[StepRows]
    phases: list[Phase]
    start: Times
    end: Times
    wait: Times
    previous: Times
    number: Times
    spans: list[tuple[int, int]]
    """First and last row of each summary."""
    index: Times = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _carved: list[Phase] = field(init=False)
    _starts: list[int] = field(init=False)
    _reached: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._carved = sorted(
            (p for p in self.phases if p.end is not None and p.end > p.start and _owns(p)),
            key=lambda phase: phase.start,
        )
        self._starts = [phase.start for phase in self._carved]
        self._reached = list(accumulate((phase.end or 0 for phase in self._carved), max))

    def place(self, index: Times) -> None:
        """Append the group's indexes of the next slice."""
        self.index = np.concatenate([self.index, index])

    @property
    def reach(self) -> int:
        """Start of the first step or of the wait before it."""
        detail = self.waits(0)
        return int(self.start[0]) if detail is None else detail.start

    @property
    def phase_spans(self) -> list[tuple[int, int]]:
        """Stretches of the phases that own their time."""
        return [(phase.start, phase.end or phase.start) for phase in self._carved]

    @property
    def summaries(self) -> list[tuple[int, int]]:
        """First and last index, in the group, of each summary."""
        return [(int(self.index[first]), int(self.index[last])) for first, last in self.spans]

    def detail(self, index: int, begin: int, end: int) -> Detail | None:
        """Return the group's step between two times as this rank saw it; None if unreported."""
        row = int(np.searchsorted(self.index, index))
        if row == len(self.index) or int(self.index[row]) != index:
            return None
        start = max(min(int(self.start[row]), end), begin)
        pieces = self._leaves(begin, end)
        wait = self.waits(row)
        if wait is not None and wait.start < end and wait.end > begin:
            free = [Span(max(wait.start, begin), min(wait.end, end))]
            free = without(free, merge((p.start, p.end) for p in pieces))
            pieces += [Piece(*span, "data_wait") for span in free]
        holes = merge((piece.start, piece.end) for piece in pieces)
        return Detail(
            start,
            without([Span(begin, start)] if begin < start else [], holes),
            without([Span(start, end)] if start < end else [], holes),
            sorted(pieces),
        )

    def waits(self, row: int) -> Span | None:
        """Return the wait before a step, clipped to the gap before it."""
        start, wait = int(self.start[row]), int(self.wait[row])
        if not wait:
            return None
        low = max(start - wait, int(self.previous[row]))
        for phase in self._between(low, start):
            end = phase.end or phase.start
            if phase.start < start and not self._encloses(phase, row):
                low = max(low, min(end, start))
        return Span(low, start) if low < start else None

    def _between(self, begin: int, end: int) -> Sequence[Phase]:
        """Return the phases that may overlap a stretch."""
        low = bisect_right(self._reached, begin)
        return self._carved[low : bisect_left(self._starts, end)]

    def _encloses(self, phase: Phase, row: int) -> bool:
        start, end = int(self.start[row]), int(self.end[row])
        near = bisect_right(self.spans, (row, len(self.end))) - 1
        if near >= 0 and row <= self.spans[near][1]:
            first, last = self.spans[near]
            start, end = int(self.start[first] - self.wait[first]), int(self.end[last])
        whole = (phase.start, phase.end) == (start, end)
        return not whole and phase.start <= start and end <= (phase.end or 0)

    def _leaves(self, begin: int, end: int) -> list[Piece]:
        """Return the innermost phases of the rank between two times."""
        near = [
            (max(phase.start, begin), min(phase.end or 0, end), phase)
            for phase in self._between(begin, end)
            if phase.start < end and (phase.end or 0) > begin
        ]
        if not near:
            return []
        low = int(np.searchsorted(self.end, begin, side="right"))
        high = int(np.searchsorted(self.start, end, side="left"))
        cuts = []
        for first, last, phase in near:
            spans = [Span(first, last)]
            inside = [
                (int(self.start[row]), int(self.end[row]))
                for row in range(low, min(high, len(self.end)))
                if self._encloses(phase, row)
            ]
            cuts += [
                (a, b, phase.name, phase.start, phase.end or 0)
                for a, b in without(spans, merge(inside))
            ]
        return innermost(cuts)


def _owns(phase: Phase) -> bool:
    return is_carved(phase.name)


def rank_steps(attempt: Attempt) -> list[RankSteps]:
    """Return the ranks that completed steps, in order."""
    found = []
    for _, log in sorted(attempt.ranks.items()):
        rows = joined(log.rows)
        if rows is None:
            continue
        slices = _segments(rows, log)
        first = max(attempt.begin, EARLIEST)
        found.append(
            RankSteps(
                log=log,
                slices=slices,
                phases=closed_phases(log, rows.start, rows.end),
                start=rows.start,
                end=rows.end,
                wait=rows.data_wait,
                previous=np.concatenate([[first], rows.end[:-1]]),
                number=rows.number,
                spans=_summary_spans(log, rows),
            )
        )
    return found


def _segments(rows: StepRows, log: RankLog) -> list[StepRows]:
    """Split the rows of one rank where it resumed again or its step number fell."""
    falls = np.flatnonzero(rows.number[1:] <= rows.number[:-1]) + 1
    cuts = {*falls.tolist()}
    if len(log.resumed) > 1:
        times = np.array([time for time, _ in log.resumed], dtype=np.int64)
        seen = np.searchsorted(times, rows.start, side="right")
        cuts |= set((np.flatnonzero(seen[1:] != seen[:-1]) + 1).tolist())
    if not cuts:
        return [rows]
    edges = [0, *sorted(cuts), len(rows.number)]
    return [
        StepRows(rows.number[a:b], rows.start[a:b], rows.end[a:b], rows.data_wait[a:b], rows.detail)
        for a, b in pairwise(edges)
    ]


def _summary_spans(log: RankLog, rows: StepRows) -> list[tuple[int, int]]:
    found = []
    for part in log.rows:
        if not part.detail and len(part.number) > 1:
            kept = np.flatnonzero((rows.end > part.begin) & (rows.end <= int(part.end[-1])))
            if len(kept) > 1:
                found.append((int(kept[0]), int(kept[-1])))
    return sorted(found)


def closed_phases(log: RankLog, start: Times, end: Times) -> list[Phase]:
    """Close phases that a completed step closes (rule 14) and add unrecorded saves (rule 18).

    A phase that an exception ended counts as closed once its rank went on.
    """
    last = int(end[-1]) if len(end) else 0
    phases = []
    for phase in log.phases:
        if phase.end is None:
            after = int(np.searchsorted(end, phase.start, side="right"))
            if after < len(end):
                closed = int(start[after]) if start[after] > phase.start else int(end[after])
                phase = Phase(phase.start, closed, phase.name)
        elif phase.failed and phase.name != "checkpoint_load":
            later = max((p.end or 0 for p in log.phases if not p.failed), default=0)
            if max(last, later) > phase.end:
                phase = Phase(phase.start, phase.end, phase.name)
        phases.append(phase)
    recorded = [p for p in phases if p.name == "checkpoint_save"]
    for begin, finish in log.saves:
        if not any(p.start < finish and (p.end is None or p.end > begin) for p in recorded):
            phases.append(Phase(begin, finish, "checkpoint_save"))
    return phases
