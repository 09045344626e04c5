"""The steps of one rank within its attempt, with the phases around and inside them.

The innermost phase owns its time (rule 14). A phase that encloses a whole record of steps lies
outside of them, so the step is the inner one; a phase that only crosses an edge lies inside. The
packed waits for data are phases of their own: they fill what nothing else of the rank covers, just
before a step or, where a summary tells the waits, at the head of each step.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from headway.ledger.attempts import Attempt, Phase, RankLog
from headway.ledger.phases import LOAD_FAILED, closed_phases, named
from headway.ledger.pieces import Piece, Span, innermost, is_carved, length, merge, without
from headway.ledger.steps import Joined, Times, joined, stretched

WAIT = "data_wait"
FALLS = 2**32
"""Segments are numbered by opening, then by how often the step number fell since."""


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
    """Columns of one rank's steps: shape (n,), int64, ns; `index` is the group's step.

    `low` to `high` is the wait for a step's data, `segment` the state it was trained from, `part`
    the summary that told of it (None: no summary at all).
    """

    log: RankLog
    phases: list[Phase]
    number: Times
    start: Times
    end: Times
    low: Times
    high: Times
    segment: Times
    part: Times | None
    spans: list[tuple[int, int]]
    """Begin and end of each summary."""
    index: Times = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    special: list[Span] = field(default_factory=list)
    """Waits of summarised steps that phases cut."""
    _carved: list[Phase] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _reached: list[int] = field(default_factory=list)

    def settle(self, ends: Times, failures: Sequence[int]) -> None:
        """Find the loads that were in vain: one failed later, or no step followed.

        `ends` are the ends of the group's steps, `failures` the times at which loads failed.
        """
        self.phases = [named(phase, ends, failures) for phase in self.phases]
        self._carved = sorted(
            (p for p in self.phases if p.is_closed and p.start < (p.end or 0) and _owns(p)),
            key=lambda phase: phase.start,
        )
        self._starts = [phase.start for phase in self._carved]
        self._reached = list(accumulate((phase.end or 0 for phase in self._carved), max))

    def place(self, index: Times) -> None:
        """Append the group's indexes of the next segment's steps."""
        self.index = np.concatenate([self.index, index])

    @property
    def segments(self) -> list[int]:
        """Number of each segment in which it did steps."""
        firsts = np.flatnonzero(self.segment[1:] != self.segment[:-1]) + 1
        return [int(self.segment[0]), *self.segment[firsts].tolist()]

    @property
    def reach(self) -> int:
        """Start of the first step or of the wait before it."""
        return min(int(self.start[0]), int(self.low[0]))

    @property
    def spans_of_phases(self) -> list[tuple[int, int]]:
        """Stretches in which a phase owns time, and those of waits that phases cut."""
        return [(phase.start, phase.end or phase.start) for phase in self._carved] + self.special

    def detail(self, index: int, begin: int, end: int) -> Detail | None:
        """Return the group's step between two times as this rank saw it; None if unreported."""
        row = int(np.searchsorted(self.index, index))
        if row == len(self.index) or int(self.index[row]) != index:
            return None
        start = max(min(int(self.start[row]), end), begin)
        pieces = self._leaves(row, begin, end)
        holes = merge((piece.start, piece.end) for piece in pieces)
        return Detail(
            start,
            without([Span(begin, start)] if begin < start else [], holes),
            without([Span(start, end)] if start < end else [], holes),
            pieces,
        )

    def waits(self, begin: int, end: int) -> list[Span]:
        """Return the waits for data that overlap a stretch."""
        first = int(np.searchsorted(self.high, begin, side="right"))
        found = []
        for row in range(first, len(self.low)):
            low, high = int(self.low[row]), int(self.high[row])
            if low >= end:
                break
            if low < high:
                found.append(Span(low, high))
        return found + [span for span in self.special if span.start < end and span.end > begin]

    def _between(self, begin: int, end: int) -> Sequence[Phase]:
        """Return the phases that may overlap a stretch."""
        low = bisect_right(self._reached, begin)
        return self._carved[low : bisect_left(self._starts, end)]

    def _leaves(self, row: int, begin: int, end: int) -> list[Piece]:
        """Return the innermost phases and waits of the rank between two times."""
        near = [
            (max(phase.start, begin), min(phase.end or 0, end), phase)
            for phase in self._between(begin, end)
            if phase.start < end and (phase.end or 0) > begin
        ]
        cuts = []
        for first, last, phase in near:
            for a, b in without([Span(first, last)], self._enclosed(phase, begin, end)):
                cuts.append((a, b, phase.name, phase.start, phase.end or 0))
        cuts += [
            (max(low, begin), min(high, end), WAIT, low, high)
            for low, high in self.waits(begin, end)
        ]
        return [_leaf(piece) for piece in innermost(cuts)]

    def _enclosed(self, phase: Phase, begin: int, end: int) -> list[Span]:
        """Return the steps near a stretch that a phase encloses."""
        low = int(np.searchsorted(self.end, begin, side="right"))
        high = int(np.searchsorted(self.start, end, side="left"))
        inside = self.enclosing(phase, low, high).nonzero()[0] + low
        return merge((int(self.start[row]), int(self.end[row])) for row in inside.tolist())

    def enclosing(self, phase: Phase, low: int, high: int) -> npt.NDArray[np.bool_]:
        """Tell for some rows whether a phase began before and ended after their whole record."""
        begin, end = self.start[low:high], self.end[low:high]
        if self.part is not None:
            part = self.part[low:high]
            edges = np.array([*self.spans, (0, 0)], dtype=np.int64)[part]
            begin = np.where(part >= 0, edges[:, 0], begin)
            end = np.where(part >= 0, edges[:, 1], end)
        finish = phase.end or 0
        same = (begin == phase.start) & (end == finish)
        found: npt.NDArray[np.bool_] = (begin >= phase.start) & (end <= finish) & ~same
        return found

    def place_waits(self) -> None:
        """Clip the waits to what no phase of the rank covers, those around the step aside."""
        if not bool((self.low < self.high).any()):
            return
        closed = [p for p in self.phases if p.is_closed and p.start < (p.end or 0)]
        firsts = np.searchsorted(self.high, [p.start for p in closed], side="right")
        lasts = np.searchsorted(self.low, [p.end or 0 for p in closed], side="left")
        for near in np.flatnonzero(firsts < lasts).tolist():
            phase, low, high = closed[near], int(firsts[near]), int(lasts[near])
            finish = phase.end or 0
            free = ~self.enclosing(phase, low, high) & (self.low[low:high] < self.high[low:high])
            if self.part is not None:
                coarse = free & (self.part[low:high] >= 0)
                for row in (coarse.nonzero()[0] + low).tolist():
                    self._split(row, closed)
                free &= self.part[low:high] < 0
            clipped = np.minimum(np.maximum(self.low[low:high], finish), self.high[low:high])
            self.low[low:high] = np.where(free, clipped, self.low[low:high])

    def _split(self, row: int, phases: Sequence[Phase]) -> None:
        """Lay the wait of a summarised step into what phases leave of it, from its head on."""
        left = int(self.high[row] - self.low[row])
        start, end = int(self.start[row]), int(self.end[row])
        near = [
            (phase.start, phase.end or 0)
            for phase in phases
            if phase.start < end
            and (phase.end or 0) > start
            and not self.enclosing(phase, row, row + 1)[0]
        ]
        for a, b in without([Span(start, end)], merge(near)):
            if left:
                self.special.append(Span(a, min(b, a + left)))
                left -= self.special[-1].end - a
        self.low[row] = self.high[row] = start


def _leaf(piece: Piece) -> Piece:
    if piece.category == LOAD_FAILED:
        return piece._replace(category="restart", part=LOAD_FAILED)
    return piece


def _owns(phase: Phase) -> bool:
    return is_carved(phase.name) or phase.name == LOAD_FAILED


def rank_steps(attempt: Attempt, long: frozenset[int]) -> list[RankSteps]:
    """Return the ranks that completed steps, in order.

    `long` names, by identity, the summaries whose longest step stands out.
    """
    found = []
    for _, log in sorted(attempt.ranks.items()):
        parts = [stretched(part) if id(part) in long else part for part in log.rows]
        rows = joined(parts)
        if rows is None:
            continue
        if len(attempt.openings) == 1 and bool((rows.number[1:] > rows.number[:-1]).all()):
            segment = np.zeros(len(rows.number), dtype=np.int64)
        else:
            rows, segment = _in_order(rows, _segments(attempt, rows))
        previous = np.concatenate([[attempt.begin], rows.end[:-1]])
        start, end = rows.start, rows.end
        if rows.part is not None:
            # what a summary guesses gives way to what a finer record knows
            start = np.where(rows.part >= 0, np.maximum(start, previous), start)
        low, high = np.minimum(np.maximum(start - rows.data_wait, previous), start), start
        if rows.part is not None:
            coarse = rows.part >= 0
            limit = np.maximum(np.minimum(end, np.append(start[1:], end[-1])), start)
            low = np.where(coarse, start, low)
            high = np.where(coarse, np.minimum(start + rows.data_wait, limit), high)
        steps = RankSteps(
            log=log,
            phases=closed_phases(log, rows.start, end),
            number=rows.number,
            start=start,
            end=end,
            low=low,
            high=high,
            segment=segment,
            part=rows.part,
            spans=[part.whole for part in rows.summaries],
        )
        steps.place_waits()
        found.append(steps)
    return found


def _segments(attempt: Attempt, rows: Joined) -> Times:
    """Number the states from which steps were trained: by `resumed`, and where numbers fall."""
    number, begin, end = rows.number, rows.start, rows.end
    if rows.part is not None:
        # a summary only guesses when each of its steps was done
        edges = np.array([*(part.whole for part in rows.summaries), (0, 0)], dtype=np.int64)
        begin = np.where(rows.part >= 0, edges[rows.part, 0], begin)
        end = np.where(rows.part >= 0, edges[rows.part, 1], end)
    opening = np.zeros(len(number), dtype=np.int64)
    if len(attempt.openings) > 1:
        opened = np.array([one.opened for one in attempt.openings[1:]], dtype=np.int64)
        opening = np.searchsorted(opened, begin, side="right").astype(np.int64)
    again = (number[1:] <= number[:-1]) & (begin[1:] >= end[:-1])
    # a step without length may stand at the edge of two records that both tell it
    again &= (number[1:] < number[:-1]) | (rows.start[1:] > rows.start[:-1])
    falls = np.concatenate([[False], again & (opening[1:] == opening[:-1])])
    segment: Times = opening * FALLS
    if falls.any():
        fallen = np.cumsum(falls)
        segment = segment + fallen - fallen[np.searchsorted(opening, opening)]
    return segment


def _in_order(rows: Joined, segment: Times) -> tuple[Joined, Times]:
    """Order steps by number within each segment, each number once, times never falling."""
    if bool(np.all((rows.number[1:] > rows.number[:-1]) | (segment[1:] > segment[:-1]))):
        return rows, segment
    detail = np.ones(len(segment), dtype=bool) if rows.part is None else rows.part < 0
    order = np.lexsort((rows.end, detail, rows.number, segment))
    number, segment = rows.number[order], segment[order]
    newest = np.append((number[1:] != number[:-1]) | (segment[1:] != segment[:-1]), True)
    order, segment = order[newest], segment[newest]
    placed = Joined(
        rows.number[order],
        np.maximum.accumulate(rows.start[order]),
        np.maximum.accumulate(rows.end[order]),
        rows.data_wait[order],
        None if rows.part is None else rows.part[order],
        rows.summaries,
    )
    return placed, segment
