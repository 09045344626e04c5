"""The group's steps from those of its ranks (rules 14-16, 19).

Group step n runs from the end of the previous one to the latest end among the ranks that report
it; its waits and phases are those of the critical rank. Ordinary steps are handled as columns,
the few with phases, gaps or excess one by one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from headway.ledger.attempts import Attempt, Phase, RankLog
from headway.ledger.pieces import Piece, Span, leaves, length, merge, without
from headway.ledger.steps import StepRows, Times, joined

SECOND = 10**9
LEAST_LIMIT = 60 * SECOND
"""No step shorter than this is called too long."""
LIMIT_FACTOR = 10
LEAST_GAP = SECOND
"""A gap up to this belongs to the step after it."""
WINDOW = 100
FEWEST = 5


@dataclass(frozen=True, slots=True)
class Pace:
    """Usual duration and period of a step in ns at the end of an attempt; None if unknown."""

    step: int | None = None
    period: int | None = None

    def is_too_long(self, duration: int) -> bool:
        """Whether a step of this duration in ns counts as stalled; never without a usual step."""
        return self.step is not None and duration > max(LEAST_LIMIT, LIMIT_FACTOR * self.step)

    @property
    def gap(self) -> int:
        """Longest gap that belongs to the step after it."""
        return LEAST_GAP if self.period is None else max(LEAST_GAP, self.period)


@dataclass(slots=True)
class GroupSteps:
    """Steps of the group in one attempt: columns of shape (n,), int64, times in ns.

    `begin` to `end` is the step's stretch, `start` where the critical rank's own step began,
    `wait` its wait for data just before, `work` what is left for the step itself. `pieces` own the
    rest: phases, stalls, unattributed gaps.
    """

    number: Times
    segment: Times
    begin: Times
    start: Times
    end: Times
    wait: Times
    work: Times
    pieces: list[Piece] = field(default_factory=list)
    pace: Pace = field(default_factory=Pace)
    phases: dict[int, list[Phase]] = field(default_factory=dict)
    """Phases per rank, those that a later step closed included."""

    @property
    def last_end(self) -> int:
        """End of the last completed step."""
        return int(self.end[-1])


@dataclass(slots=True)
class _Rank:
    log: RankLog
    index: Times
    start: Times
    end: Times
    wait: Times
    previous: Times
    phases: list[Phase]
    leaves: list[Piece]


def group_steps(attempt: Attempt, before: Pace) -> GroupSteps | None:
    """Return the steps of an attempt's group; None if it completed none.

    `before` is the pace of the previous attempt, used until this one has its own.
    """
    parts = {
        rank: _segments(rows, log)
        for rank, log in sorted(attempt.ranks.items())
        if (rows := joined(log.rows)) is not None
    }
    if not parts:
        return None
    numbers, ends, segments, offsets = [], [], [], []
    total = 0
    for segment in range(max(len(slices) for slices in parts.values())):
        slices = [s[segment] for s in parts.values() if segment < len(s)]
        low = min(int(rows.number[0]) for rows in slices)
        high = max(int(rows.number[-1]) for rows in slices)
        latest = np.full(high - low + 1, np.iinfo(np.int64).min)
        for rows in slices:
            at = rows.number - low
            latest[at] = np.maximum(latest[at], rows.end)
        reported = np.flatnonzero(latest > np.iinfo(np.int64).min)
        place = np.full(high - low + 1, -1, dtype=np.int64)
        place[reported] = np.arange(len(reported)) + total
        offsets.append((low, place))
        numbers.append(reported + low)
        ends.append(latest[reported])
        segments.append(np.full(len(reported), segment, dtype=np.int64))
        total += len(reported)
    end = np.maximum.accumulate(np.concatenate(ends))
    ranks = [_ranked(attempt.ranks[rank], slices, offsets) for rank, slices in parts.items()]
    first = max(min(int(r.start[0] - r.wait[0]) for r in ranks), attempt.begin)
    begin = np.concatenate([[min(first, int(end[0]))], end[:-1]])
    steps = _columns(np.concatenate(numbers), np.concatenate(segments), begin, end, ranks)
    steps.phases = {rank.log.rank: rank.phases for rank in ranks}
    _settle(steps, ranks, before)
    return steps


def _segments(rows: StepRows, log: RankLog) -> list[StepRows]:
    """Split the rows of one rank where it resumed again or its step number fell."""
    falls = np.flatnonzero(rows.number[1:] <= rows.number[:-1]) + 1
    times = np.array([time for time, _ in log.resumed], dtype=np.int64)
    seen = np.searchsorted(times, rows.start, side="right")
    resumes = np.flatnonzero(seen[1:] != seen[:-1]) + 1
    cuts = np.unique(np.concatenate([falls, resumes])).tolist()
    if not cuts:
        return [rows]
    edges = [0, *cuts, len(rows.number)]
    return [
        StepRows(rows.number[a:b], rows.start[a:b], rows.end[a:b], rows.data_wait[a:b], rows.detail)
        for a, b in pairwise(edges)
    ]


def _ranked(
    log: RankLog, slices: Sequence[StepRows], offsets: Sequence[tuple[int, Times]]
) -> _Rank:
    index = np.concatenate(
        [place[rows.number - low] for rows, (low, place) in zip(slices, offsets, strict=False)]
    )
    start = np.concatenate([rows.start for rows in slices])
    end = np.concatenate([rows.end for rows in slices])
    wait = np.concatenate([rows.data_wait for rows in slices])
    previous = np.concatenate([[np.iinfo(np.int64).min], end[:-1]])
    phases = _closed(log, start, end)
    return _Rank(log, index, start, end, wait, previous, phases, leaves(phases))


def _closed(log: RankLog, start: Times, end: Times) -> list[Phase]:
    """Close phases left open before or in a completed step (rule 14); add unrecorded saves (18)."""
    phases = []
    for phase in log.phases:
        if phase.end is None:
            after = int(np.searchsorted(end, phase.start, side="right"))
            if after < len(end):
                closed = int(start[after]) if start[after] > phase.start else int(end[after])
                phase = Phase(phase.start, closed, phase.name)
        phases.append(phase)
    recorded = [p for p in phases if p.name == "checkpoint_save" and p.end is not None]
    for begin, finish in log.saves:
        if not any(p.start < finish and (p.end or 0) > begin for p in recorded):
            phases.append(Phase(begin, finish, "checkpoint_save"))
    return phases


def _columns(
    number: Times, segment: Times, begin: Times, end: Times, ranks: list[_Rank]
) -> GroupSteps:
    """Choose each step's critical rank by its wait; steps with phases are settled later."""
    best = np.full(len(end), -1, dtype=np.int64)
    own = begin.copy()
    for rank in ranks:
        at = rank.index
        stop = np.minimum(rank.start, end[at])
        low = np.maximum(np.maximum(begin[at], rank.start - rank.wait), rank.previous)
        waited = np.maximum(stop - low, 0)
        better = waited > best[at]
        best[at[better]] = waited[better]
        own[at[better]] = np.maximum(stop, begin[at])[better]
    wait = np.maximum(best, 0)
    return GroupSteps(number, segment, begin, own, end, wait, end - begin - wait)


def _settle(steps: GroupSteps, ranks: list[_Rank], before: Pace) -> None:
    """Give phases, gaps and excess their time, and find the usual pace."""
    touched = sorted(_touched(steps, ranks))
    net = steps.end - steps.start
    gap = steps.start - steps.begin - steps.wait
    details = {}
    for index in touched:
        details[index] = detail = _detail(steps, ranks, index)
        steps.start[index], steps.wait[index] = detail.start, 0
        net[index] = length(detail.step)
        gap[index] = length(detail.gap)
    paces = _Paces(net, gap, before)
    suspects = np.flatnonzero((gap > LEAST_GAP) | (net > LEAST_LIMIT)).tolist()
    for index in sorted({*touched, *suspects}):
        detail = details.get(index) or _plain(steps, index)
        pieces = list(detail.pieces)
        pace = paces.at(index)
        pieces += _unattributed(detail.gap, pace.gap)
        if index and pace.step is not None and pace.is_too_long(int(net[index])):
            pieces += _excess(detail.step, pace.step)
        if index not in details:
            waited = Piece(
                int(steps.start[index] - steps.wait[index]),
                int(steps.start[index]),
                "data_wait",
            )
            if waited.end > waited.start:
                pieces.append(waited)
            steps.wait[index] = 0
        steps.pieces += pieces
        span = int(steps.end[index] - steps.begin[index])
        steps.work[index] = span - sum(piece.end - piece.start for piece in pieces)
    steps.pieces.sort()
    steps.pace = paces.at(len(net))


@dataclass(slots=True)
class _Detail:
    """One step piece by piece: gap before it, the step itself, and what owns the rest."""

    start: int
    gap: list[Span]
    step: list[Span]
    pieces: list[Piece]


def _touched(steps: GroupSteps, ranks: Iterable[_Rank]) -> set[int]:
    """Return the steps in whose stretch any rank has a phase."""
    found: set[int] = set()
    first, last = int(steps.begin[0]), steps.last_end
    for rank in ranks:
        for leaf in rank.leaves:
            if leaf.end > first and leaf.start < last:
                low = int(np.searchsorted(steps.end, leaf.start, side="right"))
                high = int(np.searchsorted(steps.end, leaf.end, side="left"))
                found.update(range(low, min(high, len(steps.end) - 1) + 1))
    return found


def _detail(steps: GroupSteps, ranks: Iterable[_Rank], index: int) -> _Detail:
    begin, end = int(steps.begin[index]), int(steps.end[index])
    best: tuple[int, _Detail] | None = None
    for rank in ranks:
        row = _row(rank, index)
        if row is None:
            continue
        start = max(min(int(rank.start[row]), end), begin)
        inside = [
            Piece(max(leaf.start, begin), min(leaf.end, end), leaf.category)
            for leaf in rank.leaves
            if leaf.start < end and leaf.end > begin
        ]
        low = max(int(rank.start[row] - rank.wait[row]), int(rank.previous[row]), begin)
        waits = without([Span(low, start)] if low < start else [], _spans(inside))
        pieces = inside + [Piece(*span, "data_wait") for span in waits]
        owned = sum(piece.end - piece.start for piece in pieces)
        if best is None or owned > best[0]:
            holes = merge(_spans(pieces))
            detail = _Detail(
                start,
                without([Span(begin, start)] if begin < start else [], holes),
                without([Span(start, end)] if start < end else [], holes),
                pieces,
            )
            best = owned, detail
    if best is None:
        raise AssertionError(f"no rank reports step {int(steps.number[index])}")
    return best[1]


def _row(rank: _Rank, index: int) -> int | None:
    row = int(np.searchsorted(rank.index, index))
    return row if row < len(rank.index) and int(rank.index[row]) == index else None


def _plain(steps: GroupSteps, index: int) -> _Detail:
    start, begin = int(steps.start[index]), int(steps.begin[index])
    before = Span(begin, start - int(steps.wait[index]))
    step = Span(start, int(steps.end[index]))
    return _Detail(
        start,
        [before] if before.start < before.end else [],
        [step] if step.start < step.end else [],
        [],
    )


def _spans(pieces: Iterable[Piece]) -> list[Span]:
    return [Span(piece.start, piece.end) for piece in pieces]


def _unattributed(gap: Sequence[Span], limit: int) -> list[Piece]:
    """Return the part of a gap beyond the limit, counted back from the step."""
    excess = length(gap) - limit
    found = []
    for start, end in gap:
        if excess <= 0:
            break
        cut = min(end, start + excess)
        found.append(Piece(start, cut, "unattributed"))
        excess -= cut - start
    return found


def _excess(step: Sequence[Span], usual: int) -> list[Piece]:
    """Return what a too long step ran beyond its usual duration."""
    found = []
    for start, end in step:
        kept = min(usual, end - start)
        usual -= kept
        if start + kept < end:
            found.append(Piece(start + kept, end, "stalled"))
    return found


class _Paces:
    """Usual duration and period before each step of an attempt (rules 16 and 19)."""

    def __init__(self, net: Times, gap: Times, before: Pace) -> None:
        self._net = net
        self._period = net[:-1] + gap[1:]
        self._before = before
        self._cache: dict[int, Pace] = {}

    def at(self, index: int) -> Pace:
        """Return the pace known before the step with this index of the attempt."""
        if index not in self._cache:
            steps = self._net[max(1, index - WINDOW) : index]
            # period i lies between the starts of the steps i and i + 1
            periods = self._period[max(1, index - WINDOW - 1) : max(index - 1, 0)]
            self._cache[index] = Pace(
                _lower_median(steps) if len(steps) >= FEWEST else self._before.step,
                _lower_median(periods) if len(periods) >= FEWEST else self._before.period,
            )
        return self._cache[index]


def _lower_median(values: Times) -> int:
    middle = (len(values) - 1) // 2
    return int(np.partition(values, middle)[middle])
