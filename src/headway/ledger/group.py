"""The group's steps from those of its ranks (rules 14-16, 19).

Group step n runs from the end of the previous one to the latest end among the ranks that report
it; its waits and phases are those of the critical rank. Ordinary steps are handled as columns,
the few with phases, gaps or excess one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from headway.ledger.attempts import Attempt, Phase
from headway.ledger.pace import LEAST_GAP, LEAST_LIMIT, Pace, Paces
from headway.ledger.phases import closed_phases, failed_loads, named
from headway.ledger.pieces import Piece, Span, clip, length, without
from headway.ledger.ranksteps import Detail, RankSteps, rank_steps
from headway.ledger.steps import StepRows, Times

UNREPORTED = np.iinfo(np.int64).min


class Coarse(NamedTuple):
    """Rows `low` to before `high`, of which only sums are known and bounds of one step in ns."""

    low: int
    high: int
    least: int
    most: int


@dataclass(slots=True)
class GroupSteps:
    """Steps of the group in one attempt: columns of shape (n,), int64, times in ns.

    `begin` to `end` is the step's stretch, `start` where the critical rank's own work began,
    `wait` its wait for data just before, `late` its wait for those of its next step, which ends at
    `late_end`, `work` what is left for the step itself. `pieces` own the rest: phases, stalls,
    unattributed gaps. From `lead_from` to the first step only the rank `lead_rank` counts, whose
    wait `lead_wait` is. `pace` is the pace at the attempt's end, `inherited` what a following
    attempt starts from.
    """

    number: Times
    segment: Times
    begin: Times
    start: Times
    end: Times
    wait: Times
    late: Times
    late_end: Times
    work: Times
    pieces: list[Piece] = field(default_factory=list)
    lead_from: int = 0
    lead_rank: int = 0
    lead_wait: list[Span] = field(default_factory=list)
    pace: Pace = field(default_factory=Pace)
    inherited: Pace = field(default_factory=Pace)
    phases: dict[int, list[Phase]] = field(default_factory=dict)
    """Phases per rank, those that a later step closed included."""
    places: dict[int, Times] = field(default_factory=dict)
    """For each rank that completed steps, their rows in these columns."""
    coarse: list[Coarse] = field(default_factory=list)
    """Rows whose raw records are gone, in order."""

    @property
    def last_end(self) -> int:
        """End of the last completed step."""
        return int(self.end[-1])


def group_steps(attempt: Attempt, before: Pace) -> GroupSteps | None:
    """Return the steps of an attempt's group; None if it completed none.

    `before` is the pace of earlier attempts, used until this one has its own. A summary's longest
    step stands alone if it is over the limit at the summary's first step; whether it is may depend
    on what the others show.
    """
    candidates = [
        part
        for log in attempt.ranks.values()
        for part in log.rows
        if part.longest is not None and part.longest[1] > LEAST_LIMIT
    ]
    long: frozenset[int] = frozenset()
    while True:
        steps, paces = _group_steps(attempt, before, long)
        if steps is None or paces is None:
            return None
        found = {
            id(part)
            for part in candidates
            if id(part) not in long and _stands_out(part, steps, paces)
        }
        if not found:
            return steps
        long |= found


def _stands_out(part: StepRows, steps: GroupSteps, paces: Paces) -> bool:
    """Whether the longest step of a summary is over the limit at the summary's first step."""
    position, longest = part.longest or (0, 0)
    rows = np.flatnonzero(steps.number == int(part.number[0]))
    first = np.flatnonzero(steps.number == int(part.number[position])).tolist() == [0]
    if first or not len(rows):
        return False  # the first step of an attempt is never too long
    return paces.at(int(rows[-1])).is_too_long(longest)


def _group_steps(
    attempt: Attempt, before: Pace, long: frozenset[int]
) -> tuple[GroupSteps | None, "Paces | None"]:
    ranks = rank_steps(attempt, long)
    if not ranks:
        return None, None
    failures = failed_loads(attempt)
    steps = _extent(attempt, ranks)
    for rank in ranks:
        rank.settle(steps.end, failures)
    touched = _touched(steps, ranks)
    critical = _critical(steps, ranks, touched)
    paces = _settle(steps, ranks, critical, touched, before)
    steps.phases = {
        number: [
            named(phase, steps.end, failures)
            for phase in closed_phases(log, steps.end[:0], steps.end[:0])
        ]
        for number, log in attempt.ranks.items()
    }
    steps.phases.update((rank.log.rank, rank.phases) for rank in ranks)
    steps.places = {rank.log.rank: rank.index for rank in ranks}
    return steps, paces


def _extent(attempt: Attempt, ranks: Sequence[RankSteps]) -> GroupSteps:
    """Number the group's steps and find where each begins and ends."""
    numbers, ends, segments = [], [], []
    total = 0
    known = sorted({segment for rank in ranks for segment in rank.segments})
    for segment in known:
        parts = []
        for rank in ranks:
            low, high = np.searchsorted(rank.segment, [segment, segment + 1])
            if low < high:
                parts.append((rank, rank.number[low:high], rank.end[low:high]))
        if len(parts) == 1:
            rank, number, latest = parts[0]
            rank.place(np.arange(total, total + len(number)))
        else:
            number = np.unique(np.concatenate([own for _, own, _ in parts]))
            latest = np.full(len(number), UNREPORTED)
            for rank, own, end in parts:
                at = np.searchsorted(number, own)
                latest[at] = np.maximum(latest[at], end)
                rank.place(at + total)
        numbers.append(number)
        ends.append(latest)
        segments.append(np.full(len(number), segment, dtype=np.int64))
        total += len(number)
    # what is told of a time before the attempt began is clipped, whole steps included
    end = np.maximum(np.maximum.accumulate(np.concatenate(ends)), attempt.begin)
    first = max(min(rank.reach for rank in ranks), attempt.begin)
    begin = np.concatenate([[min(first, int(end[0]))], end[:-1]])
    return GroupSteps(
        number=np.concatenate(numbers),
        segment=np.concatenate(segments),
        begin=begin,
        start=begin.copy(),
        end=end,
        wait=np.zeros(len(end), dtype=np.int64),
        late=np.zeros(len(end), dtype=np.int64),
        late_end=end.copy(),
        work=end,
    )


def _touched(steps: GroupSteps, ranks: Sequence[RankSteps]) -> list[int]:
    """Return the first step, and those in whose stretch a rank has a phase or several waits."""
    found = {0}
    first, last = int(steps.begin[0]), steps.last_end
    for rank in ranks:
        for start, end in rank.spans_of_phases:
            if end > first and start < last:
                low = int(np.searchsorted(steps.end, start, side="right"))
                high = int(np.searchsorted(steps.end, end, side="left"))
                found.update(range(low, min(high, len(steps.end) - 1) + 1))
        if len(ranks) > 1:
            found.update(_far_ahead(rank, steps))
    return sorted(found)


def _far_ahead(rank: RankSteps, steps: GroupSteps) -> list[int]:
    """Return the steps before whose end a rank waited for the data of the next step but one."""
    waits = np.flatnonzero(rank.low < rank.high)
    begun = np.searchsorted(rank.low[waits], steps.end[rank.index])
    near = np.searchsorted(waits, np.arange(2, len(rank.index) + 2))
    ahead: list[int] = rank.index[begun > near].tolist()
    return ahead


def _critical(steps: GroupSteps, ranks: Sequence[RankSteps], touched: Sequence[int]) -> Times:
    """Choose each step's critical rank, by index: the one with most time outside the step.

    Steps that came in one summary are judged together. Sets the columns of ordinary steps.
    """
    if len(ranks) == 1:
        rank = ranks[0]
        steps.start = np.minimum(np.maximum(rank.high, steps.begin), steps.end)
        steps.wait = steps.start - np.minimum(np.maximum(rank.low, steps.begin), steps.start)
        return np.zeros(len(steps.end), dtype=np.int64)
    blocks = _blocks(steps, ranks)
    best = np.full(len(steps.end), -1, dtype=np.int64)
    critical = np.zeros(len(steps.end), dtype=np.int64)
    for number, rank in enumerate(ranks):
        at = rank.index
        begin, end = steps.begin[at], steps.end[at]
        start = np.minimum(np.maximum(rank.high, begin), end)
        wait = start - np.minimum(np.maximum(rank.low, begin), start)
        outside = np.zeros(len(steps.end), dtype=np.int64)
        outside[at] = start - begin
        late, late_end = np.zeros(len(at), dtype=np.int64), end.copy()
        late_end[:-1] = np.minimum(rank.high[1:], end[:-1])
        late[:-1] = np.maximum(late_end[:-1] - np.maximum(rank.low[1:], start[:-1]), 0)
        outside[at] += late
        for index in touched:
            detail = rank.detail(index, int(steps.begin[index]), int(steps.end[index]))
            if detail is not None:
                outside[index] = detail.outside
        judged = np.full(len(steps.end), -1, dtype=np.int64)
        whole = outside if blocks is None else _summed(outside, blocks)
        judged[at] = whole[at]
        better = judged[at] > best[at]
        chosen = at[better]
        best[chosen] = judged[chosen]
        critical[chosen] = number
        steps.start[chosen], steps.wait[chosen] = start[better], wait[better]
        steps.late[chosen], steps.late_end[chosen] = late[better], late_end[better]
    return critical


def _blocks(steps: GroupSteps, ranks: Sequence[RankSteps]) -> Times | None:
    """Return the first index of each block of steps judged together; None if each stands alone."""
    if all(rank.part is None for rank in ranks):
        return None
    tied = np.zeros(len(steps.end), dtype=bool)
    for rank in ranks:
        if rank.part is not None:
            part, index = rank.part, rank.index
            same = (part[1:] == part[:-1]) & (part[1:] >= 0) & (index[1:] == index[:-1] + 1)
            tied[index[1:][same]] = True
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
) -> "Paces":
    """Give phases, gaps and excess their time, and find the usual pace."""
    steps.work = steps.end - steps.begin - steps.wait - steps.late
    net = steps.end - steps.start - steps.late
    gap = steps.start - steps.begin - steps.wait
    details: dict[int, Detail] = {}
    for index in touched:
        rank = ranks[int(critical[index])]
        detail = rank.detail(index, int(steps.begin[index]), int(steps.end[index]))
        if detail is None:
            raise AssertionError(f"no rank reports step {int(steps.number[index])}")
        details[index] = detail
        steps.start[index], steps.wait[index], steps.late[index] = detail.start, 0, 0
        net[index], gap[index] = length(detail.step), length(detail.gap)
    steps.lead_rank = ranks[int(critical[0])].log.rank
    _lead(steps, details[0], ranks[int(critical[0])], gap)
    paces = Paces(net, gap, before)
    suspects = np.flatnonzero((gap > LEAST_GAP) | (net > LEAST_LIMIT)).tolist()
    for index in sorted({*touched, *suspects}):
        detail = details.get(index) or _plain(steps, index)
        pace = paces.at(index)
        pieces = [*detail.pieces, *_unattributed(detail.gap, pace.gap)]
        if index and pace.step is not None and pace.is_too_long(int(net[index])):
            pieces += _excess(detail.step, pace.step)
        steps.wait[index] = steps.late[index] = 0
        steps.pieces += pieces
        span = int(steps.end[index] - steps.begin[index])
        steps.work[index] = span - sum(piece.end - piece.start for piece in pieces)
    steps.pieces.sort()
    steps.pace, steps.inherited = paces.at(len(net)), paces.inherited()
    return paces


def _lead(steps: GroupSteps, first: Detail, rank: RankSteps, gap: Times) -> None:
    """Let the first step begin with the step itself; what lies before belongs to the start-up."""
    steps.lead_from = int(steps.begin[0])
    steps.lead_wait = rank.waits(steps.lead_from, first.start)
    first.pieces = clip(first.pieces, first.start, int(steps.end[0]))
    first.gap = []
    steps.begin[0] = first.start
    gap[0] = 0


def _plain(steps: GroupSteps, index: int) -> Detail:
    start, begin, end = int(steps.start[index]), int(steps.begin[index]), int(steps.end[index])
    wait = Piece(start - int(steps.wait[index]), start, "data_wait")
    late_end = int(steps.late_end[index])
    late = Piece(late_end - int(steps.late[index]), late_end, "data_wait")
    pieces = [piece for piece in (wait, late) if piece.start < piece.end]
    return Detail(
        start,
        [Span(begin, wait.start)] if begin < wait.start else [],
        without([Span(start, end)] if start < end else [], [late[:2]] if late in pieces else []),
        pieces,
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
