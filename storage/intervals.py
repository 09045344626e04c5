"""Sets of integers as sorted, disjoint, non-touching ranges, both ends included.

The collector keeps one set of stored sequence numbers per producer: ((1, 100), (201, 300)) has
stored 200 records and waits for 101-200. Pure functions over tuples, so a set that belongs to a
failed transaction is simply dropped.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

Interval = tuple[int, int]
Intervals = tuple[Interval, ...]


def missing(intervals: Intervals, first: int, last: int) -> Iterator[Interval]:
    """Yield the parts of `first` to `last` that the set does not hold.

    Example: of 50-150, the set ((1, 100),) misses 101-150.
    """
    position = max(bisect_right(intervals, first, key=_first) - 1, 0)
    for known_first, known_last in intervals[position:]:
        if known_first > last:
            break
        if first < known_first:
            yield first, known_first - 1
        first = max(first, known_last + 1)
    if first <= last:
        yield first, last


def add(intervals: Intervals, first: int, last: int) -> Intervals:
    """Return the set with `first` to `last` in it."""
    begin = bisect_left(intervals, first - 1, key=_last)
    end = bisect_right(intervals, last + 1, key=_first)
    if begin < end:
        first = min(first, intervals[begin][0])
        last = max(last, intervals[end - 1][1])
    return (*intervals[:begin], (first, last), *intervals[end:])


def num_gaps(intervals: Intervals) -> int:
    """Return the number of ranges that are missing between stored ones."""
    return max(len(intervals) - 1, 0)


def _first(interval: Interval) -> int:
    return interval[0]


def _last(interval: Interval) -> int:
    return interval[1]
