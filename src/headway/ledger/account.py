"""The time of one attempt, independent of what later attempts decide about its steps.

Steps stay columns with running sums, so any stretch of time is summed without walking over them;
only the steps at its two edges are cut piece by piece.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from headway.ledger.attempt_time import STEP
from headway.ledger.attempts import Attempt
from headway.ledger.breakage import Breakage
from headway.ledger.group import Coarse, GroupSteps
from headway.ledger.lineage import Segment
from headway.ledger.model import Interval
from headway.ledger.pieces import Piece, Span, without
from headway.ledger.steps import Times

EXPIRED = "expired"
"""Part of `unattributed`: steps that were cut apart when only their sums were known."""


class Owned(NamedTuple):
    """A stretch of time with its category, part and step; `STEP` shares its step's fate."""

    start: int
    end: int
    category: str
    part: str | None
    row: int | None


@dataclass(slots=True)
class Account:
    """Everything an attempt's time consists of."""

    attempt: Attempt
    steps: GroupSteps | None
    around: list[Piece]
    segments: list[Segment]
    broken: Breakage
    lead: Piece | None = None
    """What goes on after its end, until a launcher saw that it ended."""
    shared: list[Owned] = field(default_factory=list)
    """Stretches taken out of the columns because another attempt ran at the same time."""
    _work: Times = field(init=False)
    _wait: Times = field(init=False)
    _whole: Counter[tuple[str, str]] | None = field(init=False)
    _starts: list[int] = field(init=False)
    start: int = field(init=False)
    """Begin of the attempt's time."""
    end: int = field(init=False)
    """End of the attempt's time."""

    def changeable(self) -> "Account":
        """Return an account that can be changed without changing this one."""
        steps = self.steps
        if steps is not None:
            steps = replace(
                steps,
                work=steps.work.copy(),
                wait=steps.wait.copy(),
                late=steps.late.copy(),
                pieces=list(steps.pieces),
            )
        return replace(self, steps=steps, around=list(self.around), shared=[])

    def of(self, segments: list[Segment]) -> "Account":
        """Return the account with another fate of its steps."""
        other = copy(self)
        other.segments = segments
        return other

    def __post_init__(self) -> None:
        self.freeze()

    def freeze(self) -> None:
        """Prepare the running sums; call again after the columns changed."""
        empty = np.zeros(1, dtype=np.int64)
        steps = self.steps
        self._work = empty if steps is None else _sums(steps.work)
        self._wait = empty if steps is None else _waits(steps)
        self._starts = [] if steps is None else [piece.start for piece in steps.pieces]
        stretches: list[tuple[int, int]] = [(p.start, p.end) for p in self.around]
        stretches += [(owned.start, owned.end) for owned in self.shared]
        if steps is not None:
            stretches.append((int(steps.begin[0]), steps.last_end))
        begin = self.attempt.begin
        self.start = min((first for first, _ in stretches), default=begin)
        self.end = max((last for _, last in stretches), default=begin)
        self._whole = None

    def fates(self, durable: int, lost: bool) -> Iterator[tuple[int, int, str, str]]:
        """Yield row ranges with category and part: what became of the steps.

        `durable` is the newest step in a durable checkpoint of the chain; `lost` says that steps
        at risk are lost with the run (rule 7).
        """
        if self.steps is None:
            return
        for segment in self.segments:
            if segment.first is None:
                continue
            low, high = np.searchsorted(self.steps.segment, [segment.index, segment.index + 1])
            numbers = self.steps.number[low:high]
            survives = segment.survives if segment.on_chain else 0
            safe, kept = np.searchsorted(numbers, [min(durable, survives), survives], side="right")
            cuts = (
                (low, low + safe, "productive", "durable"),
                (low + safe, low + kept, *_at_risk(lost)),
                (low + kept, high, "rolled_back", "whole"),
            )
            for begin, end, category, part in cuts:
                if begin < end:
                    yield int(begin), int(end), category, part

    def shares(self, durable: int, lost: bool) -> list[tuple[int, int, str, str]]:
        """Return row ranges with category and part as their time is to be given.

        They are the fates, but where one ends among steps of which only sums are known, the time
        that either may have taken is `unattributed`.
        """
        found = list(self.fates(durable, lost))
        if self.steps is None or not self.steps.coarse:
            return found
        for place in range(len(found) - 1, 0, -1):
            (low, cut, *fate), (_, high, *other) = found[place - 1], found[place]
            block = self._coarse(cut)
            if block is None or fate[0] == other[0]:
                continue
            begin, end = self._unsure(block, cut)
            begin, end = max(begin, low), min(end, high)
            found[place - 1 : place + 1] = [
                (low, begin, fate[0], fate[1]),
                (begin, end, "unattributed", EXPIRED),
                (end, high, other[0], other[1]),
            ]
        return [one for one in found if one[0] < one[1]]

    def _coarse(self, cut: int) -> Coarse | None:
        """Return the block of rows that a cut before a row divides."""
        blocks = [] if self.steps is None else self.steps.coarse
        place = bisect_left(blocks, cut, key=lambda block: block.high)
        return blocks[place] if place < len(blocks) and blocks[place].low < cut else None

    def _unsure(self, block: Coarse, cut: int) -> tuple[int, int]:
        """Return the rows of a block whose time may have been spent before or after a cut.

        Of n steps that took W together, k before the cut took at least max(k * least, W - (n - k)
        * most) and at most min(k * most, W - (n - k) * least).
        """
        first = int(self._work[block.low])
        whole = int(self._work[block.high]) - first
        before, after = cut - block.low, block.high - cut
        least = max(before * block.least, whole - after * block.most)
        most = min(before * block.most, whole - after * block.least)
        rows = self._work[block.low : block.high + 1]
        low = int(np.searchsorted(rows, first + least, side="right")) - 1
        high = int(np.searchsorted(rows, first + most, side="left"))
        return block.low + low, block.low + high

    def amounts(self, start: int, end: int, durable: int, lost: bool) -> Counter[tuple[str, str]]:
        """Return ns per (category, part) between two times; no part is an empty string."""
        found: Counter[tuple[str, str]] = Counter()
        if start >= self.end or end <= self.start:
            return found
        fates = self.shares(durable, lost)
        if start <= self.start and end >= self.end and not self.shared:
            return self._all(fates)
        for piece in self.around:
            self._put(found, self.owned(piece), start, end, fates)
        for owned in self.shared:
            self._put(found, owned, start, end, fates)
        steps = self.steps
        if steps is None or start >= steps.last_end or end <= int(steps.begin[0]):
            return found
        low = int(np.searchsorted(steps.begin, start, side="left"))
        high = int(np.searchsorted(steps.end, end, side="right"))
        for row in {low - 1, high} if low <= high else {low - 1}:
            if 0 <= row < len(steps.end):
                for owned in self.explode(row):
                    self._put(found, owned, start, end, fates)
        if low >= high:
            return found
        for begin, finish, category, part in fates:
            a, b = max(begin, low), min(finish, high)
            if a < b:
                found[category, part] += int(self._work[b] - self._work[a])
        found["data_wait", ""] += int(self._wait[high] - self._wait[low])
        first, last = int(steps.begin[low]), int(steps.end[high - 1])
        for piece in steps.pieces[bisect_left(self._starts, first) :]:
            if piece.start >= last:
                break
            self._put(found, Owned(*piece, None), start, end, fates)
        return found

    def _all(self, fates: list[tuple[int, int, str, str]]) -> Counter[tuple[str, str]]:
        """Return the amounts of the whole attempt; only its steps' fate may have changed."""
        if self._whole is None:
            self._whole = Counter()
            for piece in [*self.around, *([] if self.steps is None else self.steps.pieces)]:
                self._whole[piece.category, piece.part or ""] += piece.end - piece.start
        found = self._whole.copy()
        tail = found.pop((STEP, ""), 0)
        if self.steps is not None:
            for begin, end, category, part in fates:
                found[category, part] += int(self._work[end] - self._work[begin])
            if tail:
                category, part = _fate(len(self.steps.end) - 1, fates)
                found[category, part] += tail
            found["data_wait", ""] += int(self._wait[-1])
        return found

    def work_of(self, segment: int, above: int, up_to: int | None) -> int:
        """Return the time of a segment's steps above one number and up to another."""
        if self.steps is None:
            return 0
        low, high = np.searchsorted(self.steps.segment, [segment, segment + 1]).tolist()
        numbers = self.steps.number[low:high]
        begin = low + int(np.searchsorted(numbers, above, side="right"))
        if up_to is not None:
            high = low + int(np.searchsorted(numbers, up_to, side="right"))
        return int(self._work[high] - self._work[begin]) if begin < high else 0

    def explode(self, row: int) -> list[Owned]:
        """Return one step piece by piece in order of time."""
        steps = self.steps
        if steps is None:
            return []
        begin, end = int(steps.begin[row]), int(steps.end[row])
        taken = [
            Owned(*piece, row)
            for piece in steps.pieces[bisect_left(self._starts, begin) :]
            if piece.start < end
        ]
        start, wait, late = int(steps.start[row]), int(steps.wait[row]), int(steps.late[row])
        if wait:
            taken.append(Owned(start - wait, start, "data_wait", None, row))
        if late:
            finish = int(steps.late_end[row])
            taken.append(Owned(finish - late, finish, "data_wait", None, row))
        taken.sort()
        if steps.work[row] == 0:
            return taken
        free = without([Span(begin, end)], [(owned.start, owned.end) for owned in taken])
        return sorted([*taken, *(Owned(*span, STEP, None, row) for span in free)])

    def owned(self, piece: Piece) -> Owned:
        """Return a piece around the steps; what shares a step's fate shares the last one's."""
        return Owned(*piece, self.last_row if piece.category == STEP else None)

    def step_intervals(self, fates: list[tuple[int, int, str, str]]) -> list[Interval]:
        """Return the steps as intervals: joined where nothing but waits lies between them."""
        steps = self.steps
        if steps is None:
            return []
        identity = self.attempt.identity
        broken = {0, len(steps.end)} | {begin for begin, *_ in fates}
        special = np.searchsorted(steps.end, self._starts, side="right").tolist()
        single: set[int] = {*special, *np.flatnonzero(steps.work == 0).tolist()}
        broken |= single | {row + 1 for row in single}
        found = []
        for low, high in pairwise(sorted(broken)):
            category, part = _fate(low, fates)
            if low in single:
                found += [
                    Interval(
                        start=owned.start,
                        end=owned.end,
                        category=fate[0],
                        part=fate[1],
                        attempt=identity,
                        first_step=int(steps.number[low]),
                        last_step=int(steps.number[low]),
                        amounts={fate[0]: owned.end - owned.start},
                    )
                    for owned in self.explode(low)
                    for fate in (fate_of(owned, fates),)
                ]
                continue
            work = int(self._work[high] - self._work[low])
            wait = int(self._wait[high] - self._wait[low])
            found.append(
                Interval(
                    start=int(steps.begin[low]),
                    end=int(steps.end[high - 1]),
                    category=category,
                    part=part,
                    attempt=identity,
                    first_step=int(steps.number[low]),
                    last_step=int(steps.number[high - 1]),
                    amounts={category: work, "data_wait": wait} if wait else {category: work},
                )
            )
        return found

    @property
    def last_step_end(self) -> int:
        """End of the last completed step, else the begin of the attempt."""
        return self.attempt.begin if self.steps is None else self.steps.last_end

    @property
    def last_row(self) -> int | None:
        """Row of the last completed step."""
        return None if self.steps is None else len(self.steps.end) - 1

    def _put(
        self,
        found: Counter[tuple[str, str]],
        owned: Owned,
        start: int,
        end: int,
        fates: list[tuple[int, int, str, str]],
    ) -> None:
        overlap = min(owned.end, end) - max(owned.start, start)
        if overlap > 0:
            category, part = fate_of(owned, fates)
            found[category, part or ""] += overlap


def _sums(values: Times) -> Times:
    """Return the sum of the values before each place."""
    found = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=found[1:])
    return found


def _waits(steps: GroupSteps) -> Times:
    """Return the waits before each step, summed up; columns of zeros take no memory."""
    if steps.wait.any() or steps.late.any():
        return _sums(steps.wait + steps.late)
    return np.broadcast_to(np.int64(0), len(steps.wait) + 1)


def fate_of(owned: Owned, fates: list[tuple[int, int, str, str]]) -> tuple[str, str | None]:
    """Return category and part of a stretch, those of its step where it shares its fate."""
    if owned.category == STEP and owned.row is not None:
        return _fate(owned.row, fates)
    return owned.category, owned.part


def _fate(row: int, fates: list[tuple[int, int, str, str]]) -> tuple[str, str]:
    for begin, end, category, part in fates:
        if begin <= row < end:
            return category, part
    raise AssertionError(f"row {row} has no fate")


def _at_risk(lost: bool) -> tuple[str, str]:
    return ("rolled_back", "whole") if lost else ("productive", "at_risk")
