"""The step curve rises with the steps, falls at a rollback, and is thinned evenly."""

from headway.collector.curve import step_curve
from headway.ledger import Interval


def interval(start: int, end: int, first: int | None, last: int | None, attempt: str) -> Interval:
    return Interval(
        start=start,
        end=end,
        category="productive",
        part=None,
        attempt=attempt,
        first_step=first,
        last_step=last,
    )


def test_contiguous_steps_share_their_point_and_a_rollback_falls() -> None:
    curve = step_curve(
        [
            interval(0, 10, 1, 10, "a"),
            interval(10, 15, 11, 15, "a"),
            interval(15, 20, None, None, "b"),
            interval(20, 25, 11, 15, "b"),
        ],
        points=100,
    )
    assert [(point["time"], point["step"], point["attempt"]) for point in curve] == [
        (0, 0, "a"),
        (10, 10, "a"),
        (15, 15, "a"),
        (20, 10, "b"),
        (25, 15, "b"),
    ]


def test_a_long_curve_keeps_its_ends_and_as_many_points_as_asked() -> None:
    intervals = [interval(n, n + 1, n + 1, n + 1, "a") for n in range(1000)]
    curve = step_curve(intervals, points=11)
    assert [point["time"] for point in curve] == list(range(0, 1001, 100))


def test_a_run_without_steps_has_no_curve() -> None:
    assert step_curve([interval(0, 10, None, None, "a")], points=10) == []


def test_a_step_of_several_pieces_is_no_rollback() -> None:
    curve = step_curve(
        [
            interval(0, 9, 1, 9, "a"),
            interval(9, 10, 10, 10, "a"),
            interval(10, 12, 10, 10, "a"),
            interval(12, 20, 11, 18, "a"),
        ],
        points=100,
    )
    assert [(point["time"], point["step"]) for point in curve] == [
        (0, 0),
        (9, 9),
        (12, 10),
        (20, 18),
    ]
