"""Interval sets behave like sets of integers."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headway.storage import intervals

RANGES = st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair)))


def members(known: intervals.Intervals) -> set[int]:
    return {number for first, last in known for number in range(first, last + 1)}


@given(st.lists(RANGES), RANGES)
def test_adding_and_missing_agree_with_plain_sets(added: list[tuple[int, int]], asked) -> None:
    known: intervals.Intervals = ()
    expected: set[int] = set()
    for first, last in added:
        known = intervals.add(known, first, last)
        expected |= set(range(first, last + 1))
    assert members(known) == expected
    assert all(left[1] + 1 < right[0] for left, right in pairwise(known))
    missing = tuple(intervals.missing(known, *asked))
    assert members(missing) == set(range(asked[0], asked[1] + 1)) - expected


def test_a_gap_stays_open_until_it_is_filled() -> None:
    known = intervals.add(intervals.add((), 1, 100), 201, 300)
    assert intervals.num_gaps(known) == 1
    known = intervals.add(known, 101, 200)
    assert known == ((1, 300),)
    assert intervals.num_gaps(known) == 0


def test_a_set_without_records_has_no_gap() -> None:
    assert intervals.num_gaps(()) == 0
