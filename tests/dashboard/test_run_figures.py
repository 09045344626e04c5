"""The figures of the Run page that the API's newer answers feed, as tables of corners."""

from datetime import UTC
from typing import Any

import pytest

from headway.dashboard.figures import marks, pace, saves, steps
from headway.dashboard.lanes import highest, thinned
from sample_run import SECOND, sample


def report(**changed: Any) -> dict[str, Any]:
    return sample(faults=()).report | {"checkpoints": [], "incidents": []} | changed


def save(step: int, durable: int | None, **more: Any) -> dict[str, Any]:
    known = {"scheduled": durable, "attempt": "a", "background": None, "blocking": None}
    return {
        "checkpoint": f"c{step}",
        "step": step,
        "state": "claimed",
        "durable_since": durable,
        "queue_depth": None,
    } | (known | more)


def point(time: int, step: int, attempt: str = "a") -> dict[str, Any]:
    return {"time": time, "step": step, "attempt": attempt}


@pytest.mark.parametrize(
    ("points", "held", "expected"),
    [
        ([(0, 0), (30, 30)], [], [(0, 0), (30, 30)]),
        ([(0, 0), (30, 30)], [(20, 25)], [(0, 0), (25, 25), (25, 5), (30, 10)]),
        (
            [(0, 0), (30, 30)],
            [(10, 12), (20, 25)],
            [(0, 0), (12, 12), (12, 2), (25, 15), (25, 5), (30, 10)],
        ),
        ([(0, 0), (30, 30)], [(20, 40)], [(0, 0), (30, 30)]),
        ([], [(20, 25)], []),
    ],
)
def test_steps_are_at_risk_until_a_durable_checkpoint_holds_them(
    points: list[tuple[int, int]], held: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    given = report(checkpoints=[save(step, time) for step, time in held], attempt_list=[])

    assert steps.steps_at_risk(given, [point(*one) for one in points]) == expected


def test_a_rollback_leaves_nothing_at_risk() -> None:
    attempts = [{"attempt": "a", "start": 0, "resumed": None}]
    attempts += [{"attempt": "b", "start": 50, "resumed": 20}]
    given = report(checkpoints=[save(20, 25)], attempt_list=attempts)
    points = [point(0, 0), point(30, 30), point(60, 20, "b"), point(70, 30, "b")]

    found = steps.steps_at_risk(given, points)

    assert found[-3:] == [(50, 0), (60, 0), (70, 10)]


@pytest.mark.parametrize(
    ("count", "most", "expected"),
    [
        (3, 3, [0, 1, 2]),
        (5, 3, [0, 2, 4]),
        (1_000, 2, [0, 999]),
    ],
)
def test_items_are_thinned_evenly_with_both_ends(
    count: int, most: int, expected: list[int]
) -> None:
    assert list(thinned(range(count), most)) == expected


def test_a_saw_with_too_many_teeth_keeps_the_highest_of_each_slot() -> None:
    saw = [(time, time % 10) for time in range(1_000)]

    found = highest(saw, 20)

    assert len(found) <= 20
    assert {value for _, value in found} == {9}
    assert highest(saw[:5], 20) == saw[:5]


def column(number: int, **told: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("step", "tail", "slowest", "wait", "loss", "lowest_loss"))
    known = {"steps": 0, "steps_per_second": 0.0, "unknown_losses": 0, "highest_loss": None}
    start = number * SECOND
    return {"start": start, "end": start + SECOND, **nothing, **known, **told}


COLUMNS = [
    column(
        0,
        steps=2,
        steps_per_second=2.0,
        step=SECOND // 2,
        tail=SECOND // 2,
        wait=0,
        loss=3.0,
        lowest_loss=3.0,
        highest_loss=4.0,
    ),
    column(1),
    column(2, steps=1, steps_per_second=1.0, step=SECOND, tail=SECOND, wait=0, unknown_losses=1),
]


def test_a_column_without_steps_is_a_gap_in_the_step_time_and_zero_in_the_throughput() -> None:
    times = pace.step_time(report(), COLUMNS, UTC)
    rate = pace.throughput(report(), COLUMNS, None, UTC)

    median = next(trace for trace in times.data if trace.name == "Median step")
    assert list(median.y) == [500.0, None, 1000.0]
    assert times.layout.yaxis.ticksuffix == " ms"
    assert list(rate.data[0].y) == [120.0, 0.0, 60.0]
    assert rate.layout.yaxis.title.text == "steps/min"


def test_throughput_is_in_tokens_where_a_step_has_a_known_number_of_them() -> None:
    rate = pace.throughput(report(), COLUMNS, 1_000, UTC)

    assert list(rate.data[0].y) == [2_000.0, 0.0, 1_000.0]
    assert rate.layout.yaxis.title.text == "tokens/s"


def test_a_loss_that_is_no_number_is_marked_and_does_not_break_the_line() -> None:
    figure = pace.loss(report(), COLUMNS, UTC)

    line, marked = figure.data
    assert list(line.y) == [3.0, None, None]
    assert (marked.name, len(marked.x)) == ("Not a number", 1)
    assert pace.has_loss(COLUMNS)
    assert not pace.has_loss(COLUMNS[1:])


def test_each_save_is_drawn_with_its_write_and_the_time_to_the_next_of_its_attempt() -> None:
    first = save(10, 10 * SECOND, background=2 * SECOND, blocking=SECOND)
    second = save(20, 30 * SECOND, background=4 * SECOND, blocking=SECOND)
    third = save(30, 90 * SECOND, background=4 * SECOND, blocking=SECOND, attempt="b")

    figure = saves.write_times(report(checkpoints=[first, second, third]), UTC)

    lines = {trace.name: list(trace.y) for trace in figure.data}
    assert lines["Time to the next save"] == [20.0]
    assert lines["Write in the background"] == [2.0, 4.0, 4.0]
    assert lines["Training waited"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("number", "traces"), [(0, 0), (1, 2), (41, 1)])
def test_incidents_are_marked_on_the_edge_and_lines_only_lead_down_from_a_few(
    number: int, traces: int
) -> None:
    figure = pace.throughput(report(), COLUMNS, None, UTC)
    before = len(figure.data)
    incidents = [{"number": one, "opened": one * SECOND, "cause": "hang"} for one in range(number)]

    marks.mark_incidents(figure, incidents, UTC)

    assert len(figure.data) - before == traces
    for trace in figure.data[before:]:
        assert {y for y in trace.y if y is not None} <= {0.0, 1.0}
