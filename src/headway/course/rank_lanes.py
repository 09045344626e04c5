"""What each rank of a run did over time, as rows of columns no finer than a screen shows.

A rank's own records come first: its phases, its waits for data, its completed steps, each step
with the fate that the ledger gives it. What they leave open is told by the ledger of the group,
losses first. Time after which a rank had left an attempt that went on is `left`, the first sign of
who broke. In a column the category with most time is shown, where losses count four times: of a
minute a restart of ten seconds stays visible.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headway.course.columns import Times, covered, disjoint, edges
from headway.ledger import Ledger
from headway.ledger.account import Account
from headway.ledger.attempt_time import BEFORE_STEPS
from headway.ledger.attempts import RankLog
from headway.ledger.phases import LOAD_FAILED
from headway.ledger.pieces import innermost, is_carved
from headway.metrics import CATEGORIES

LEFT = "left"
"""Time after a rank had left an attempt in which others went on."""
LOSSES = ("stalled", "restart", "down")
_WEIGHT = 4
_STEPS = ("productive", "rolled_back")

Codes = npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One row: the ranks `first` to `last`, or those of a node.

    `times` has the ns per category; `steps` says that one of them recorded steps in that time.
    """

    ranks: tuple[int, ...]
    node: str | None
    times: Mapping[str, int]
    steps: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLanes:
    """Rows over time; `codes` of shape (rows, columns) number the `names`; times in UTC ns."""

    start: int
    end: int
    names: tuple[str, ...]
    lanes: Sequence[Lane]
    codes: Codes

    @property
    def columns(self) -> int:
        """Number of columns."""
        return int(self.codes.shape[1])


def rank_lanes(
    ledger: Ledger,
    start: int | None = None,
    end: int | None = None,
    *,
    columns: int = 1_000,
    rows: int = 1_000,
    by_node: bool = False,
) -> RankLanes:
    """Return the lanes of a run's ranks between two times in UTC ns, clipped to the run.

    With more ranks than `rows` neighbours share a row. Equal columns, at most `columns` of them.
    """
    begin = ledger.start if start is None else max(start, ledger.start)
    finish = ledger.closed_at if end is None else min(end, ledger.closed_at)
    cuts = edges(begin, max(finish, begin + 1), columns)
    group = _group(ledger, cuts)
    names = (*CATEGORIES, *sorted({*group, *_customs(ledger)} - set(CATEGORIES)), LEFT)
    weights = np.array([_WEIGHT if name in (*LOSSES, LEFT) else 1 for name in names])
    reader = _Reader(ledger, cuts, names, group)
    lanes, codes = [], []
    for ranks, node in _rows(ledger, rows, by_node):
        amounts, stepped = reader.read(ranks)
        codes.append((amounts * weights[:, None]).argmax(axis=0).astype(np.uint16))
        sums = amounts.sum(axis=1).tolist()
        times = {name: ns for name, ns in zip(names, sums, strict=True) if ns}
        lanes.append(Lane(ranks=tuple(ranks), node=node, times=times, steps=stepped))
    shape = (len(codes), len(cuts) - 1)
    return RankLanes(
        start=begin,
        end=max(finish, begin),
        names=names,
        lanes=lanes,
        codes=np.stack(codes) if codes else np.empty(shape, dtype=np.uint16),
    )


def run_lengths(codes: Codes) -> list[list[int]]:
    """Return each row as pairs of length and code: 5 5 5 0 gives 3, 5, 1, 0."""
    found = []
    for row in codes:
        firsts = np.concatenate([[0], np.flatnonzero(row[1:] != row[:-1]) + 1, [len(row)]])
        pairs = np.stack([np.diff(firsts), row[firsts[:-1]]], axis=1)
        found.append(pairs.ravel().tolist())
    return found


def _rows(ledger: Ledger, most: int, by_node: bool) -> list[tuple[list[int], str | None]]:
    """Return the ranks of each row, with their node where it is the only one."""
    nodes: dict[int, str | None] = {}
    for attempt in ledger.book.attempts:
        for rank, log in attempt.ranks.items():
            nodes[rank] = log.node or nodes.get(rank)
    ranks = sorted(nodes)
    if by_node:
        grouped: dict[str | None, list[int]] = {}
        for rank in ranks:
            grouped.setdefault(nodes[rank], []).append(rank)
        listed = list(grouped.values())
        size = -(-len(listed) // most) if listed else 1
        parts = [
            [rank for node in listed[i : i + size] for rank in node]
            for i in range(0, len(listed), size)
        ]
    else:
        size = -(-len(ranks) // most) if ranks else 1
        parts = [ranks[i : i + size] for i in range(0, len(ranks), size)]
    found = []
    for part in parts:
        known = {nodes[rank] for rank in part}
        found.append((part, known.pop() if len(known) == 1 else None))
    return found


def _customs(ledger: Ledger) -> set[str]:
    return {
        phase.name
        for attempt in ledger.book.attempts
        for log in attempt.ranks.values()
        for phase in log.phases
        if is_carved(phase.name)
    }


def _group(ledger: Ledger, cuts: Times) -> dict[str, Times]:
    """Return the time per category of the group's ledger in each column."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for one in ledger.intervals():
        if one.end > cuts[0] and one.start < cuts[-1]:
            spans.setdefault(one.category, []).append((one.start, one.end))
    return {
        name: covered(*disjoint(*_arrays(sorted(found, key=lambda span: span[1]))), cuts)
        for name, found in sorted(spans.items())
    }


def _arrays(spans: Sequence[tuple[int, int]]) -> tuple[Times, Times]:
    pairs = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


class _Reader:
    """Reads rows of ranks of one ledger."""

    def __init__(
        self, ledger: Ledger, cuts: Times, names: Sequence[str], group: Mapping[str, Times]
    ) -> None:
        self._cuts = cuts
        self._place = {name: number for number, name in enumerate(names)}
        self._group = group
        self._whole = np.diff(cuts)
        # losses first, then what else is not a step; steps take what is left
        order = [*LOSSES, *(name for name in names if name not in (*LOSSES, *_STEPS, LEFT))]
        self._order = [name for name in (*order, *_STEPS) if name in group]
        tries = (_try(ledger, number, cuts) for number in range(len(ledger.book.accounts)))
        self._tries = [one for one in tries if len(one.cuts) > 1]

    def read(self, ranks: Iterable[int]) -> tuple[Times, bool]:
        """Return the ns of a row per category and column, and whether a rank recorded steps."""
        total = np.zeros((len(self._place), len(self._whole)), dtype=np.int64)
        stepped = False
        for rank in ranks:
            own = np.zeros_like(total)
            for one in self._tries:
                log = one.account.attempt.ranks.get(rank)
                if log is not None:
                    stepped |= self._own(own[:, one.near], one, log)
            self._complete(own)
            total += own
        return total, stepped

    def _own(self, own: Times, one: "_Try", log: RankLog) -> bool:
        """Add what a rank recorded of one attempt; return whether it recorded steps."""
        cuts = one.cuts
        free = np.diff(cuts) - own.sum(axis=0)
        if log.ended is not None and log.ended < one.over:
            gone = covered(*_arrays([(log.ended, one.over)]), cuts)
            free -= self._put(own, LEFT, gone, free)
        until = one.account.end if log.ended is None else log.ended
        for name, found in _phases(log, one.start, cuts, until).items():
            free -= self._put(own, name, found, free)
        steps = _steps(log, cuts)
        if steps is None:
            return False
        waits, begins, ends = steps
        free -= self._put(own, "data_wait", covered(*disjoint(*waits), cuts), free)
        for first, last, category in one.fates:
            low, high = np.searchsorted(ends, [first, last], side="right").tolist()
            if low < high:
                found = covered(*disjoint(begins[low:high], ends[low:high]), cuts)
                free -= self._put(own, category, found, free)
        return True

    def _put(self, own: Times, name: str, found: Times, free: Times) -> Times:
        taken = np.minimum(found, np.maximum(free, 0))
        own[self._place[name]] += taken
        return taken

    def _complete(self, own: Times) -> None:
        """Give what a rank's records leave open to the categories of the group."""
        free = self._whole - own.sum(axis=0)
        for name in self._order:
            place = self._place[name]
            room = np.maximum(self._group[name] - own[place], 0)
            taken = np.minimum(room, np.maximum(free, 0))
            own[place] += taken
            free -= taken
        # a rank that was ahead of its group waited for it within a step
        left = free > 0
        if left.any():
            steps = own[[self._place[name] for name in _STEPS]]
            of = np.where(steps[1] > steps[0], self._place[_STEPS[1]], self._place[_STEPS[0]])
            own[of[left], np.flatnonzero(left)] += free[left]


@dataclass(frozen=True, slots=True)
class _Try:
    """An attempt as its ranks need it: `near` are the columns it may have time in, with `cuts`.

    `start` is the category of its start, `over` when its last rank had left it, `fates` when the
    steps of each fate ended: after the first time, by the second.
    """

    account: Account
    start: str
    over: int
    fates: Sequence[tuple[int, int, str]]
    near: slice
    cuts: Times


def _try(ledger: Ledger, number: int, cuts: Times) -> _Try:
    account = ledger.book.accounts[number]
    # a start that failed is a restart as a whole
    failed = account.steps is None and not ledger.is_alive(number)
    over = _over(account)
    low = int(np.searchsorted(cuts, account.start, side="right")) - 1
    last = max(over, account.end, account.attempt.end)
    high = int(np.searchsorted(cuts, last, side="left"))
    near = slice(max(low, 0), min(high, len(cuts) - 1))
    return _Try(
        account,
        "restart" if number or failed else "startup",
        over,
        _fates(account, ledger),
        near,
        cuts[near.start : near.stop + 1] if near.start < near.stop else cuts[:0],
    )


def _over(account: Account) -> int:
    """Return when an attempt was over: with its last rank, or when a launcher saw that it was."""
    if account.attempt.ended:
        return max(log.ended or 0 for log in account.attempt.ranks.values())
    return account.end if account.lead is None else max(account.end, account.lead.end)


def _fates(account: Account, ledger: Ledger) -> list[tuple[int, int, str]]:
    """Return when the steps of each fate ended, in order of time."""
    if account.steps is None:
        return []
    steps = account.steps
    found = [
        (int(steps.begin[begin]), int(steps.end[end - 1]), category)
        for begin, end, category, _ in account.fates(*ledger.fate_terms)
    ]
    return sorted(found)


def _phases(log: RankLog, base: str, cuts: Times, until: int) -> dict[str, Times]:
    """Return the time that a rank's own phases cover in each column, by category.

    A phase that nothing ended goes on `until` its rank ended, unless a step was done after it.
    """
    first, last = int(cuts[0]), int(cuts[-1])
    done = int(log.rows[-1].end[-1]) if log.rows else 0
    listed = []
    for phase in log.phases:
        if not (is_carved(phase.name) or phase.name in (*BEFORE_STEPS, LOAD_FAILED)):
            continue
        end = phase.end
        if end is None:
            end = until if phase.start >= done else phase.start
        if phase.start < end and phase.start < last and end > first:
            name = _category(phase.name, base)
            listed.append((phase.start, end, name, phase.start, end))
    spans: dict[str, list[tuple[int, int]]] = {}
    for piece in innermost(listed):
        spans.setdefault(piece.category, []).append((piece.start, piece.end))
    return {name: covered(*_arrays(found), cuts) for name, found in sorted(spans.items())}


def _category(phase: str, base: str) -> str:
    if phase in BEFORE_STEPS:
        return base
    return "restart" if phase == LOAD_FAILED else phase


def _steps(log: RankLog, cuts: Times) -> tuple[tuple[Times, Times], Times, Times] | None:
    """Return a rank's waits for data and its steps near the columns, sorted by their ends."""
    first, last = int(cuts[0]), int(cuts[-1])
    rows = [part for part in log.rows if int(part.end[-1]) > first and part.reach < last]
    if not rows:
        return None
    waits, begins, ends = [], [], []
    for part in rows:
        if part.detail:
            waits.append((part.start - part.data_wait, part.start))
            begins.append(part.start)
        else:
            waits.append((part.start, part.start + part.data_wait))
            begins.append(part.start + part.data_wait)
        ends.append(part.end)
    begin, end = np.concatenate(begins), np.concatenate(ends)
    early = np.concatenate([wait for wait, _ in waits])
    late = np.concatenate([wait for _, wait in waits])
    if not bool((end[1:] >= end[:-1]).all()):
        order = np.argsort(end, kind="stable")
        begin, end, early, late = begin[order], end[order], early[order], late[order]
    some = early < late
    return (early[some], late[some]), begin, end
