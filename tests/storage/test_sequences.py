"""Sets of sequence numbers behave like sets of integers."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headway.sequences import SequenceSet

RANGES = st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair)))


def members(ranges) -> set[int]:
    return {number for first, last in ranges for number in range(first, last + 1)}


@given(st.lists(RANGES), RANGES)
def test_adding_and_missing_agree_with_plain_sets(
    added: list[tuple[int, int]], asked: tuple[int, int]
) -> None:
    known = SequenceSet(added)
    assert members(known) == members(added)
    assert all(left[1] + 1 < right[0] for left, right in pairwise(known))
    assert members(known.missing(*asked)) == members([asked]) - members(added)


def test_a_gap_stays_open_until_it_is_filled() -> None:
    known = SequenceSet([(1, 100), (201, 300)])
    assert known.gaps() == [(101, 200)]
    known.add(101, 200)
    assert list(known) == [(1, 300)]
    assert known.gaps() == []
