"""Sets of whole numbers as sorted, disjoint, inclusive ranges: which records are known.

Adding ranges in any order, twice or overlapping gives the same set, which is what makes ingest
and the ledger idempotent.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

Source = tuple[str | None, str]
"""A run and a producer, whose records are numbered: a number is known of both together, so that
nobody who may write to one run can make the records of another look known. None is no run."""


class SequenceSet:
    """A set of sequence numbers, held as inclusive ranges."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in ranges:
            self.add(first, last)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges in order."""
        return zip(self._firsts, self._lasts, strict=True)

    def missing(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the parts of a range that the set does not hold.

        Example: of 1-10 a set that holds 3-4 and 8-20 misses 1-2 and 5-7.
        """
        if first <= last and (not self._lasts or first > self._lasts[-1]):
            return [(first, last)]  # nearly always: what is new follows what is known
        found = []
        position = bisect_left(self._lasts, first)
        while first <= last and position < len(self._firsts):
            if self._firsts[position] > last:
                break
            if self._firsts[position] > first:
                found.append((first, self._firsts[position] - 1))
            first = self._lasts[position] + 1
            position += 1
        if first <= last:
            found.append((first, last))
        return found

    def add(self, first: int, last: int) -> None:
        """Add a range, joining it with what it touches."""
        if self._lasts and first == self._lasts[-1] + 1:
            self._lasts[-1] = last
            return
        begin = bisect_left(self._lasts, first - 1)
        end = begin
        while end < len(self._firsts) and self._firsts[end] <= last + 1:
            first = min(first, self._firsts[end])
            last = max(last, self._lasts[end])
            end += 1
        self._firsts[begin:end] = [first]
        self._lasts[begin:end] = [last]

    def gaps(self) -> list[tuple[int, int]]:
        """Return the ranges missing between held ones."""
        return [
            (last + 1, first - 1)
            for last, first in zip(self._lasts, self._firsts[1:], strict=False)
        ]
