"""The group's steps from those of its ranks (rules 14-16, 19).

Group step n runs from the end of the previous one to the latest end among the ranks that report
it; its waits and phases are those of the critical rank. Ordinary steps are handled as columns,
the few with phases, gaps or excess one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headway.ledger.attempts import Attempt, Phase
from headway.ledger.pieces import Piece, Span, clip, length
from headway.ledger.ranksteps import Detail, RankSteps, rank_steps
from headway.ledger.steps import StepRows, Times

SECOND = 10**9
LEAST_LIMIT = 60 * SECOND
"""No step shorter than this is called too long."""
LIMIT_FACTOR = 10
LEAST_GAP = SECOND
"""A gap up to this belongs to the step after it."""
WINDOW = 100
FEWEST = 5
UNREPORTED = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Pace:
    """Usual duration and period of a step in ns; None if unknown."""

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
    rest: phases, stalls, unattributed gaps. From `lead_from` to the first step only the rank
    `lead_rank` counts, whose wait `lead_wait` is. `pace` is the pace at the attempt's end,
    `inherited` what a following attempt starts from.
    """

    number: Times
    segment: Times
    begin: Times
    start: Times
    end: Times
    wait: Times
    work: Times
    pieces: list[Piece] = field(default_factory=list)
    lead_from: int = 0
    lead_rank: int = 0
    lead_wait: list[Piece] = field(default_factory=list)
    pace: Pace = field(default_factory=Pace)
    inherited: Pace = field(default_factory=Pace)
    phases: dict[int, list[Phase]] = field(default_factory=dict)
    """Phases per rank, those that a later step closed included."""

    @property
    def last_end(self) -> int:
        """End of the last completed step."""
        return int(self.end[-1])


def group_steps(attempt: Attempt, before: Pace) -> GroupSteps | None:
    """Return the steps of an attempt's group; None if it completed none.

    `before` is the pace of earlier attempts, used until this one has its own.
    """
    ranks = rank_steps(attempt)
    if not ranks:
        return None
    steps = _extent(attempt, ranks)
    touched = _touched(steps, ranks)
    critical = _critical(steps, ranks, touched)
    _settle(steps, ranks, critical, touched, before)
    steps.phases = {rank.log.rank: rank.phases for rank in ranks}
    return steps


def _extent(attempt: Attempt, ranks: Sequence[RankSteps]) -> GroupSteps:
    """Number the group's steps and find where each begins and ends."""
    numbers, ends, segments = [], [], []
    total = 0
    for segment in range(max(len(rank.slices) for rank in ranks)):
        slices: list[tuple[RankSteps, StepRows]] = [
            (rank, rank.slices[segment]) for rank in ranks if segment < len(rank.slices)
        ]
        low = min(int(rows.number[0]) for _, rows in slices)
        high = max(int(rows.number[-1]) for _, rows in slices)
        latest = np.full(high - low + 1, UNREPORTED)
        for _, rows in slices:
            at = rows.number - low
            latest[at] = np.maximum(latest[at], rows.end)
        reported = np.flatnonzero(latest > UNREPORTED)
        place = np.full(high - low + 1, -1, dtype=np.int64)
        place[reported] = np.arange(len(reported)) + total
        for rank, rows in slices:
            rank.place(place[rows.number - low])
        numbers.append(reported + low)
        ends.append(latest[reported])
        segments.append(np.full(len(reported), segment, dtype=np.int64))
        total += len(reported)
    end = np.maximum.accumulate(np.concatenate(ends))
    first = max(min(rank.reach for rank in ranks), attempt.begin)
    begin = np.concatenate([[min(first, int(end[0]))], end[:-1]])
    zeros = np.zeros(len(end), dtype=np.int64)
    return GroupSteps(
        np.concatenate(numbers), np.concatenate(segments), begin, begin.copy(), end, zeros, zeros
    )


def _touched(steps: GroupSteps, ranks: Sequence[RankSteps]) -> list[int]:
    """Return the steps in whose stretch any rank has a phase, and the first one."""
    found = {0}
    first, last = int(steps.begin[0]), steps.last_end
    for rank in ranks:
        for start, end in rank.phase_spans:
            if end > first and start < last:
                low = int(np.searchsorted(steps.end, start, side="right"))
                high = int(np.searchsorted(steps.end, end, side="left"))
                found.update(range(low, min(high, len(steps.end) - 1) + 1))
    return sorted(found)


def _critical(steps: GroupSteps, ranks: Sequence[RankSteps], touched: Sequence[int]) -> Times:
    """Choose each step's critical rank, by index: the one with most time outside the step.

    Steps that came in one summary are judged together. Sets `start` and `wait` of ordinary steps.
    """
    blocks = _blocks(steps, ranks)
    best = np.full(len(steps.end), -1, dtype=np.int64)
    critical = np.zeros(len(steps.end), dtype=np.int64)
    for number, rank in enumerate(ranks):
        at = rank.index
        stop = np.minimum(rank.start, steps.end[at])
        low = np.maximum(np.maximum(steps.begin[at], rank.start - rank.wait), rank.previous)
        wait = np.maximum(stop - low, 0)
        start = np.maximum(stop, steps.begin[at])
        outside = np.zeros(len(steps.end), dtype=np.int64)
        outside[at] = start - steps.begin[at]
        if len(ranks) > 1:
            for index in touched:
                detail = rank.detail(index, int(steps.begin[index]), int(steps.end[index]))
                if detail is not None:
                    outside[index] = detail.outside
        judged = np.full(len(steps.end), -1, dtype=np.int64)
        whole = outside if blocks is None else _summed(outside, blocks)
        judged[at] = whole[at]
        better = judged[at] > best[at]
        best[at[better]] = judged[at[better]]
        critical[at[better]] = number
        steps.start[at[better]] = start[better]
        steps.wait[at[better]] = wait[better]
    return critical


def _blocks(steps: GroupSteps, ranks: Sequence[RankSteps]) -> Times | None:
    """Return the first index of each block of steps judged together; None if each stands alone."""
    if len(ranks) == 1 or not any(rank.summaries for rank in ranks):
        return None
    tied = np.zeros(len(steps.end), dtype=bool)
    for rank in ranks:
        for first, last in rank.summaries:
            tied[first + 1 : last + 1] = True
    return np.flatnonzero(~tied)


def _summed(values: Times, blocks: Times) -> Times:
    """Return for each step the sum over its block."""
    sums = np.add.reduceat(values, blocks)
    return np.repeat(sums, np.diff(np.append(blocks, len(values))))


def _settle(
    steps: GroupSteps,
    ranks: Sequence[RankSteps],
    critical: Times,
    touched: Sequence[int],
    before: Pace,
) -> None:
    """Give phases, gaps and excess their time, and find the usual pace."""
    steps.work = steps.end - steps.begin - steps.wait
    net = steps.end - steps.start
    gap = steps.start - steps.begin - steps.wait
    details: dict[int, Detail] = {}
    for index in touched:
        rank = ranks[int(critical[index])]
        detail = rank.detail(index, int(steps.begin[index]), int(steps.end[index]))
        if detail is None:
            raise AssertionError(f"no rank reports step {int(steps.number[index])}")
        details[index] = detail
        steps.start[index], steps.wait[index] = detail.start, 0
        net[index], gap[index] = length(detail.step), length(detail.gap)
    steps.lead_rank = ranks[int(critical[0])].log.rank
    _lead(steps, details[0], gap)
    paces = Paces(net, gap, before)
    suspects = np.flatnonzero((gap > LEAST_GAP) | (net > LEAST_LIMIT)).tolist()
    for index in sorted({*touched, *suspects}):
        detail = details.get(index) or _plain(steps, index)
        pace = paces.at(index)
        pieces = [*detail.pieces, *_unattributed(detail.gap, pace.gap)]
        if index and pace.step is not None and pace.is_too_long(int(net[index])):
            pieces += _excess(detail.step, pace.step)
        steps.wait[index] = 0
        steps.pieces += pieces
        span = int(steps.end[index] - steps.begin[index])
        steps.work[index] = span - sum(piece.end - piece.start for piece in pieces)
    steps.pieces.sort()
    steps.pace, steps.inherited = paces.at(len(net)), paces.inherited()


def _lead(steps: GroupSteps, first: Detail, gap: Times) -> None:
    """Let the first step begin with the step itself; what lies before belongs to the start-up."""
    steps.lead_from = int(steps.begin[0])
    before = clip(first.pieces, steps.lead_from, first.start)
    steps.lead_wait = [piece for piece in before if piece.category == "data_wait"]
    first.pieces = clip(first.pieces, first.start, int(steps.end[0]))
    first.gap = []
    steps.begin[0] = first.start
    gap[0] = 0


def _plain(steps: GroupSteps, index: int) -> Detail:
    start, begin = int(steps.start[index]), int(steps.begin[index])
    wait = Piece(start - int(steps.wait[index]), start, "data_wait")
    return Detail(
        start,
        [Span(begin, wait.start)] if begin < wait.start else [],
        [Span(start, int(steps.end[index]))],
        [wait] if wait.start < wait.end else [],
    )


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


class Paces:
    """Usual duration and period before each step of an attempt (rules 16 and 19)."""

    def __init__(self, net: Times, gap: Times, before: Pace) -> None:
        self._net = net
        self._period = net[:-1] + gap[1:]
        self._before = before
        self._cache: dict[int, Pace] = {}

    def at(self, index: int) -> Pace:
        """Return the pace known before the step with this index of the attempt."""
        if index not in self._cache:
            self._cache[index] = self._pace(index, FEWEST)
        return self._cache[index]

    def inherited(self) -> Pace:
        """Return the pace for the next attempt, be it from few steps."""
        return self._pace(len(self._net), 1)

    def _pace(self, index: int, fewest: int) -> Pace:
        steps = self._net[max(1, index - WINDOW) : index]
        # period i lies between the starts of the steps i and i + 1
        periods = self._period[max(1, index - WINDOW - 1) : max(index - 1, 0)]
        return Pace(
            _lower_median(steps) if len(steps) >= fewest else self._before.step,
            _lower_median(periods) if len(periods) >= fewest else self._before.period,
        )


def _lower_median(values: Times) -> int:
    middle = (len(values) - 1) // 2
    return int(np.partition(values, middle)[middle])
