"""The steps of a long attempt of one rank, read stretch by stretch.

Reading all at once takes a dozen numbers a step for a while; so only what is kept takes memory. A
stretch begins some steps before the last one's end and has to agree with it on what both hold, as
in `growth`; where one does not, the attempt is read as a whole.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from headway.ledger.attempts import Attempt, Opening, RankLog
from headway.ledger.group import GroupSteps, group_steps
from headway.ledger.growth import COLUMNS, FOREIGN, LAG, OVERLAP
from headway.ledger.pace import Pace
from headway.ledger.phases import closed_phases, failed_loads, named
from headway.ledger.pieces import Piece
from headway.ledger.steps import StepRows, Times

STRETCH = 50_000
"""Steps that are read at once."""


def in_stretches(attempt: Attempt, before: Pace) -> GroupSteps | None:
    """Return the steps of an attempt; None if it is short or has to be read as a whole."""
    stepped = [log for log in attempt.ranks.values() if log.rows]
    if len(stepped) != 1 or len(attempt.openings) != 1:
        return None
    (log,) = stepped
    ends = np.cumsum([len(part.number) for part in log.rows])
    if int(ends[-1]) < 2 * STRETCH or not _in_order(log.rows):
        return None
    return _Stretches(attempt, log, ends, before).read()


class _Stretches:
    def __init__(self, attempt: Attempt, log: RankLog, ends: Times, before: Pace) -> None:
        self._attempt = attempt
        self._log = log
        self._ends = ends
        """How many steps the parts up to each one hold."""
        self._before = before
        self._ends_of_steps: list[Times] = []
        self._first = 0
        """Number of the first step."""
        self._odd: dict[str, list[tuple[Times, Times]]] = defaultdict(list)
        """Rows and entries of other columns that are not what they usually are."""
        self._pieces: list[Piece] = []
        self._kept = 0

    def read(self) -> GroupSteps | None:
        first: GroupSteps | None = None
        late: GroupSteps | None = None
        total, base = int(self._ends[-1]), 0
        while self._kept < total:
            low = int(np.searchsorted(self._ends, self._kept - OVERLAP, side="right"))
            low = low if self._kept else 0
            high = int(np.searchsorted(self._ends, self._kept + STRETCH, side="left")) + 1
            begin = int(self._ends[low - 1]) if low else 0
            tail = self._tail(low, high, late, begin - base)
            known = late
            late = None if tail is None else group_steps(tail, self._before)
            if late is None or late.segment[0] != late.segment[-1]:
                return None
            if known is not None and not _alike(known, late, begin - base, self._kept - begin):
                return None
            first = first or late
            self._take(late, begin, total if high >= len(self._ends) else None)
            base = begin
        if first is None or late is None:
            return None
        return self._joined(first, late)

    def _tail(self, low: int, high: int, known: GroupSteps | None, row: int) -> Attempt | None:
        """Return an attempt of the parts `low` to before `high`; None if a phase crosses its begin.

        It begins with a row of the steps that are `known`.
        """
        attempt, log = self._attempt, self._log
        since = attempt.begin if known is None else int(known.begin[row])
        until = int(log.rows[min(high, len(log.rows)) - 1].end[-1])
        spans = [(phase.start, phase.end or phase.start) for phase in log.phases] + log.saves
        if known is not None and any(start < since < end for start, end in spans):
            return None
        tail = Attempt(attempt.identity, begin=since, openings=[Opening(since)])
        tail.load_failures = attempt.load_failures
        tail.ranks[log.rank] = RankLog(
            log.rank,
            rows=log.rows[low:high],
            phases=[phase for phase in log.phases if since <= phase.start < until],
            saves=[save for save in log.saves if since <= save[0] < until],
        )
        return tail

    def _take(self, late: GroupSteps, begin: int, total: int | None) -> None:
        """Keep the steps of a stretch that begins with row `begin`, the last ones if it goes on."""
        kept = begin + len(late.number) - LAG if total is None else total
        rows = slice(self._kept - begin, kept - begin)
        self._ends_of_steps.append(late.end[rows].copy())
        self._first = self._first or int(late.number[0])
        usual = _usual(late.begin[rows], late.end[rows], self._first + self._kept)
        for name, column in usual.items():
            found = getattr(late, name)[rows]
            odd = np.flatnonzero(found != column)
            self._odd[name].append((odd + self._kept, found[odd]))
        edge = int(late.end[self._kept - begin - 1]) if self._kept else 0
        del self._pieces[bisect_left(self._pieces, edge, key=_start) :]
        self._pieces += late.pieces[bisect_left(late.pieces, edge, key=_start) :]
        self._kept = kept

    def _joined(self, first: GroupSteps, last: GroupSteps) -> GroupSteps:
        total = self._kept
        edges = np.concatenate([first.begin[:1], *self._ends_of_steps])
        self._ends_of_steps.clear()
        begin, end = edges[:-1], edges[1:]
        # places and numbers without a hole are two views of the same entries
        every = np.arange(total + min(self._first, total))
        column = {
            name: self._or_usual(name, column)
            for name, column in _usual(begin, end, self._first, every).items()
        }
        found = GroupSteps(
            segment=np.broadcast_to(np.int64(last.segment[0]), total),
            begin=begin,
            end=end,
            number=column["number"],
            start=column["start"],
            wait=column["wait"],
            late=column["late"],
            late_end=column["late_end"],
            work=column["work"],
            pieces=self._pieces,
            lead_from=first.lead_from,
            lead_rank=first.lead_rank,
            lead_wait=first.lead_wait,
            pace=last.pace,
            inherited=last.inherited,
            places={self._log.rank: every[:total]},
        )
        failures = failed_loads(self._attempt)
        for rank, log in self._attempt.ranks.items():
            told = slice(None) if rank == self._log.rank else slice(0)
            found.phases[rank] = [
                named(phase, end, failures)
                for phase in closed_phases(log, found.start[told], end[told])
            ]
        return found

    def _or_usual(self, name: str, usual: Times) -> Times:
        """Return a column, the usual one itself where it differs nowhere."""
        parts = [part for part in self._odd.pop(name) if len(part[0])]
        if not parts:
            return usual
        column = usual if usual.flags.owndata else usual.copy()
        for rows, values in parts:
            column[rows] = values
        return column


def _usual(begin: Times, end: Times, first: int, every: Times | None = None) -> dict[str, Times]:
    """Return what columns are like for steps, from the number `first` on, with nothing between.

    `every` may hold 0, 1 and so on, for the numbers to be a view of.
    """
    count = len(end)
    numbers = None if every is None else every[first : first + count]
    if numbers is None or len(numbers) < count:
        numbers = np.arange(first, first + count)
    zeros = np.broadcast_to(np.int64(0), count)
    return {
        "number": numbers,
        "start": begin,
        "wait": zeros,
        "late": zeros,
        "late_end": end,
        "work": end - begin,
    }


def _in_order(rows: Sequence[StepRows]) -> bool:
    """Whether parts follow each other in number and time, and so do the steps of each."""
    return all(
        b.number[0] > a.number[-1] and b.reach >= a.end[-1] for a, b in pairwise(rows)
    ) and all(
        bool((part.end[1:] >= part.end[:-1]).all() and (part.number[1:] > part.number[:-1]).all())
        # a summary's waits lie within its steps, where this one looks for none
        and (part.detail or not part.data_wait.any())
        for part in rows
    )


def _alike(old: GroupSteps, late: GroupSteps, shift: int, overlap: int) -> bool:
    """Whether two stretches agree on their common steps; `late` begins `shift` rows after `old`."""
    if overlap < OVERLAP or len(late.number) < overlap:
        return False
    same = all(
        np.array_equal(
            getattr(late, name)[FOREIGN:overlap],
            getattr(old, name)[shift + FOREIGN : shift + overlap],
        )
        for name in COLUMNS
    )
    begin, end = int(late.begin[FOREIGN]), int(late.end[overlap - 1])
    return same and _within(late, begin, end) == _within(old, begin, end)


def _within(steps: GroupSteps, begin: int, end: int) -> list[Piece]:
    low = bisect_left(steps.pieces, begin, key=_start)
    return steps.pieces[low : bisect_left(steps.pieces, end, key=_start)]


def _start(piece: Piece) -> int:
    return piece.start
