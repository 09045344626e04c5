"""Time in columns: exact, and nothing counted twice."""

import numpy as np
import pytest

from headway.course.columns import covered, disjoint, edges


@pytest.mark.parametrize(
    ("start", "end", "columns", "expected"),
    [
        (0, 10, 5, [0, 2, 4, 6, 8, 10]),
        (0, 10, 3, [0, 3, 6, 10]),
        (7, 9, 5, [7, 8, 9]),
        (7, 7, 5, [7, 7]),
        (10**18, 10**18 + 3 * 10**16, 3, [10**18 + n * 10**16 for n in range(4)]),
    ],
)
def test_edges_divide_a_stretch_evenly(
    start: int, end: int, columns: int, expected: list[int]
) -> None:
    assert edges(start, end, columns).tolist() == expected


@pytest.mark.parametrize(
    ("spans", "cuts", "expected"),
    [
        ([], [0, 5, 10], [0, 0]),
        ([(0, 4), (6, 9)], [0, 5, 7, 10], [4, 1, 2]),
        ([(2, 8)], [0, 3, 4, 10], [1, 1, 4]),
        ([(0, 100)], [40, 50, 60], [10, 10]),
        ([(0, 1), (99, 100)], [40, 50, 60], [0, 0]),
    ],
)
def test_stretches_cover_their_columns(
    spans: list[tuple[int, int]], cuts: list[int], expected: list[int]
) -> None:
    pairs = np.array(spans, dtype=np.int64).reshape(-1, 2)

    assert covered(pairs[:, 0], pairs[:, 1], np.array(cuts)).tolist() == expected


def test_stretches_that_overlap_are_counted_once() -> None:
    starts, ends = disjoint(np.array([0, 3, 2, 20]), np.array([5, 8, 8, 25]))

    assert covered(starts, ends, np.array([0, 10, 30])).tolist() == [8, 5]
