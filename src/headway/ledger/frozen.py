"""Steps of which the raw records are gone: what is kept of them, and how they are read again.

The group's columns of an attempt's first steps are frozen: a step with phases, gaps or stalls
stands alone, ordinary neighbours within one checkpoint interval stand together with their sums and
the bounds of a single step. What follows is read from raw records as ever, some frozen steps
before it included, and joined to them as `growth` joins new steps to old ones.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from headway.ledger.attempts import Attempt, Opening, Phase, RankLog
from headway.ledger.group import Coarse, GroupSteps, group_steps
from headway.ledger.growth import LAG, OVERLAP
from headway.ledger.pace import Pace
from headway.ledger.phases import closed_phases, failed_loads, named
from headway.ledger.pieces import Piece, Span
from headway.ledger.segments import FrozenSegment, Lead, Stretch
from headway.ledger.steps import StepRows, Times, select, shares

COLUMNS = ("number", "begin", "start", "end", "wait", "late", "late_end", "work")
TIMES = ("begin", "start", "end", "late_end")
"""Columns that are moments."""


@dataclass(slots=True)
class Frozen:
    """The frozen steps of one attempt, one row each."""

    columns: dict[str, Times]
    pieces: list[Piece]
    coarse: list[Coarse]
    lead: Lead

    @property
    def num_steps(self) -> int:
        """Number of steps."""
        return len(self.columns["number"])

    def moved(self, shift: int) -> "Frozen":
        """Return the same steps later by a time in ns: the node's clock was measured anew since."""
        if not shift:
            return self
        return Frozen(
            {
                name: column + shift if name in TIMES else column
                for name, column in self.columns.items()
            },
            [p._replace(start=p.start + shift, end=p.end + shift) for p in self.pieces],
            self.coarse,
            Lead(
                self.lead.since + shift,
                self.lead.rank,
                tuple((start + shift, end + shift) for start, end in self.lead.waits),
            ),
        )


def frozen_steps(segments: Iterable[FrozenSegment]) -> Frozen | None:
    """Return the rows of one attempt's segments; None unless they begin with its first step.

    A segment that does not follow those before it is left out with all after it.
    """
    listed = sorted(segments, key=lambda segment: segment.first_row)
    parts: list[dict[str, Times]] = []
    pieces: list[Piece] = []
    coarse: list[Coarse] = []
    row = 0
    lead: Lead | None = None
    for segment in listed:
        if segment.first_row != row or (lead := lead or segment.lead) is None:
            break
        for stretch in segment.stretches:
            parts.append(_rows(stretch))
            if stretch.count > 1:
                coarse.append(Coarse(row, row + stretch.count, stretch.least, stretch.most))
            row += stretch.count
        pieces += [Piece(*piece) for piece in segment.pieces]
    if lead is None or not parts:
        return None
    columns = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
    return Frozen(columns, pieces, coarse, lead)


def _rows(stretch: Stretch) -> dict[str, Times]:
    """Return the rows of a stretch; its times are shared out evenly."""
    count = stretch.count
    cuts = np.arange(count + 1, dtype=np.int64)
    edges = np.int64(stretch.begin) + shares(stretch.end - stretch.begin, cuts, count)
    begin, end = edges[:-1], edges[1:]
    number = np.arange(stretch.number - count + 1, stretch.number + 1, dtype=np.int64)
    if count == 1:
        own = ("start", "wait", "late", "late_end", "work")
        columns = {name: np.array([getattr(stretch, name)], dtype=np.int64) for name in own}
    else:
        wait = np.diff(shares(stretch.wait, cuts, count))
        columns = {
            "start": begin + wait,
            "wait": wait,
            "late": np.zeros(count, dtype=np.int64),
            "late_end": end.copy(),
            "work": end - begin - wait,
        }
    return {"number": number, "begin": begin, "end": end, **columns}


def thawed(frozen: Frozen, attempt: Attempt, before: Pace, until: int) -> GroupSteps:
    """Return all steps of an attempt, the frozen ones and those that its raw records tell.

    `until` is the time in ns up to which steps count, `before` the pace of earlier attempts.
    """
    frozen = frozen.moved(_shift(frozen, attempt))
    columns = frozen.columns
    kept = int(np.searchsorted(columns["end"], until, side="right"))
    edge = int(columns["end"][kept - 1]) if kept else 0
    late, tail = None, Attempt(attempt.identity)
    if kept == frozen.num_steps:
        tail = _tail(attempt, columns, max(kept - OVERLAP, 0))
        late = group_steps(tail, before)
    after = 0
    if late is not None:
        after = int(np.searchsorted(late.number, columns["number"][kept - 1], side="right"))
    joined: dict[str, Times] = {
        name: column[:kept]
        if late is None
        else np.concatenate([column[:kept], getattr(late, name)[after:]])
        for name, column in columns.items()
    }
    pieces = [piece for piece in frozen.pieces if piece.start < edge]
    if late is not None:
        pieces += late.pieces[bisect_left(late.pieces, edge, key=lambda piece: piece.start) :]
    return GroupSteps(
        **joined,
        segment=np.zeros(len(joined["number"]), dtype=np.int64),
        pieces=pieces,
        lead_from=frozen.lead.since,
        lead_rank=frozen.lead.rank,
        lead_wait=[Span(*wait) for wait in frozen.lead.waits],
        pace=before if late is None else late.pace,
        inherited=before if late is None else late.inherited,
        phases=_phases(attempt, tail, late, joined),
        places=_places(attempt, joined["number"]),
        coarse=[block for block in frozen.coarse if block.high <= kept],
    )


def _shift(frozen: Frozen, attempt: Attempt) -> int:
    """Return by how much the last frozen step ended later by its raw records, in ns."""
    last = int(frozen.columns["number"][-1])
    ends = [
        int(part.end[last - int(part.number[-1]) - 1])
        for log in attempt.ranks.values()
        for part in log.rows
        if int(part.number[-1]) == last
        or (part.detail and int(part.number[0]) <= last <= int(part.number[-1]))
    ]
    return max(ends, default=int(frozen.columns["end"][-1])) - int(frozen.columns["end"][-1])


def _tail(attempt: Attempt, columns: Mapping[str, Times], first: int) -> Attempt:
    """Return an attempt that consists of what is to be read from raw records."""
    since, number = int(columns["begin"][first]), int(columns["number"][first])
    tail = Attempt(attempt.identity, begin=since, openings=[Opening(since)])
    for rank, log in attempt.ranks.items():
        rows = [
            kept
            for part in log.rows
            if int(part.number[-1]) >= number and (kept := _from(part, number)) is not None
        ]
        if rows:
            tail.ranks[rank] = RankLog(
                rank,
                rows=rows,
                phases=[phase for phase in log.phases if phase.start >= since],
                saves=[save for save in log.saves if save[0] >= since],
            )
    return tail


def _from(rows: StepRows, number: int) -> StepRows | None:
    return rows if int(rows.number[0]) >= number else select(rows, rows.number >= number)


def _phases(
    attempt: Attempt, tail: Attempt, late: GroupSteps | None, columns: Mapping[str, Times]
) -> dict[int, list[Phase]]:
    """Return the phases per rank; what was recorded comes before the saves that were not."""
    failures, ends = failed_loads(attempt), columns["end"]
    found: dict[int, list[Phase]] = {}
    for rank, log in attempt.ranks.items():
        if late is None or rank not in tail.ranks:
            alone = closed_phases(log, ends[:0], ends[:0])
            found[rank] = [named(phase, ends, failures) for phase in alone]
            continue
        old = replace(
            log,
            phases=[phase for phase in log.phases if phase.start < tail.begin],
            saves=[save for save in log.saves if save[0] < tail.begin],
        )
        earlier = [
            named(phase, ends, failures)
            for phase in closed_phases(old, columns["start"], columns["end"])
        ]
        cut, recorded = len(old.phases), len(tail.ranks[rank].phases)
        found[rank] = [
            *earlier[:cut],
            *late.phases[rank][:recorded],
            *earlier[cut:],
            *late.phases[rank][recorded:],
        ]
    return found


def _places(attempt: Attempt, numbers: Times) -> dict[int, Times]:
    """Return the rows of the steps that each rank's raw records tell."""
    found = {}
    for rank, log in attempt.ranks.items():
        if log.rows:
            told = np.sort(np.concatenate([part.number for part in log.rows]))
            found[rank] = np.searchsorted(numbers, told)
    return found


def can_freeze(
    steps: GroupSteps, attempt: Attempt, until: int, done: int, saves: Iterable[int]
) -> int:
    """Return how many of an attempt's first steps can be frozen, `done` of them already are.

    All must have ended by `until` (ns), ranks must have gone on, and where the raw records are to
    begin no phase may be open. While an attempt goes on, only whole intervals are frozen between
    checkpoints, the steps in `saves`, where there are any.
    """
    if len(attempt.openings) != 1 or steps.segment[0] != steps.segment[-1]:
        return done
    if not bool((steps.number[1:] > steps.number[:-1]).all()):
        return done
    kept = int(np.searchsorted(steps.end, until, side="right"))
    kept = min([kept, *(int(index[-1]) - LAG for index in steps.places.values())])
    stretches = [
        (phase.start, phase.end or phase.start)
        for log in attempt.ranks.values()
        for phase in log.phases
    ]
    stretches += [save for log in attempt.ranks.values() for save in log.saves]
    covered = np.zeros(max(kept, 0) + 1, dtype=np.int64)
    for start, end in stretches:
        low = int(np.searchsorted(steps.begin, start, side="right"))
        high = int(np.searchsorted(steps.begin, end, side="left"))
        if low < high and low <= kept:
            covered[low] += 1
            covered[min(high, kept)] -= 1
    rows = np.arange(max(done, OVERLAP) + 1, kept + 1)
    rows = rows[np.cumsum(covered)[rows - OVERLAP] == 0]
    saved = np.isin(steps.number, list(saves))
    if saved.any() and not attempt.ended:
        rows = rows[saved[rows - 1]]
    return int(rows[-1]) if len(rows) else done


def freeze(
    steps: GroupSteps,
    attempt: Attempt,
    done: int,
    kept: int,
    saves: Iterable[int],
    marks: Iterable[int],
) -> list[FrozenSegment]:
    """Return the segments of the steps from row `done` up to row `kept`.

    `saves` are the steps of checkpoints, after each of which another segment begins, `marks` the
    numbers of steps that have to keep their own times.
    """
    alone = _alone(steps, kept) | np.isin(steps.number[:kept], list(marks))
    cuts = np.flatnonzero(np.isin(steps.number[:kept], list(saves))) + 1
    edges = sorted({done, kept, *(cut for cut in cuts.tolist() if done < cut < kept)})
    starts = [piece.start for piece in steps.pieces]
    lead = Lead(
        steps.lead_from,
        steps.lead_rank,
        tuple((span.start, span.end) for span in steps.lead_wait),
    )
    found = []
    for low, high in pairwise(edges):
        begin = 0 if low == 0 else int(steps.begin[low])
        a, b = bisect_left(starts, begin), bisect_left(starts, int(steps.end[high - 1]))
        found.append(
            FrozenSegment(
                attempt=attempt.identity,
                first_row=low,
                stretches=tuple(_stretches(steps, low, high, alone)),
                pieces=tuple(
                    (piece.start, piece.end, piece.category, piece.part)
                    for piece in steps.pieces[a:b]
                ),
                lead=lead if low == 0 else None,
            )
        )
    return found


def _alone(steps: GroupSteps, kept: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which of the first rows are not to be joined with their neighbours."""
    alone = steps.work[:kept] <= 0
    alone[0] = True
    alone[1:] |= steps.number[1:kept] != steps.number[: kept - 1] + 1
    for piece in steps.pieces:
        low = int(np.searchsorted(steps.end[:kept], piece.start, side="right"))
        high = int(np.searchsorted(steps.end[:kept], piece.end, side="left"))
        alone[low : high + 1] = True
    return alone


def _stretches(
    steps: GroupSteps, low: int, high: int, alone: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Iterable[Stretch]:
    known = {block.low: block for block in steps.coarse}
    row = low
    while row < high:
        after = row + 1
        if not alone[row]:
            while after < high and not alone[after]:
                after += 1
        work = steps.work[row:after]
        bounds = [known[at] for at in range(row, after) if at in known]
        yield Stretch(
            count=after - row,
            number=int(steps.number[after - 1]),
            begin=int(steps.begin[row]),
            start=int(steps.start[row]),
            end=int(steps.end[after - 1]),
            wait=int((steps.wait[row:after] + steps.late[row:after]).sum())
            if after - row > 1
            else int(steps.wait[row]),
            late=0 if after - row > 1 else int(steps.late[row]),
            late_end=int(steps.late_end[after - 1]),
            work=int(work.sum()),
            least=min([int(work.min()), *(block.least for block in bounds)]),
            most=max([int(work.max()), *(block.most for block in bounds)]),
        )
        row = after
