"""Figures carry the report's numbers."""

from datetime import UTC, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest

from headway import metrics
from headway.dashboard import lanes
from headway.dashboard.figures import attempts, checkpoints, ledger, recovery, steps
from headway.dashboard.views import plots
from headway.wording import duration
from sample_run import SECOND, START, sample


def test_the_waterfall_leads_from_elapsed_to_productive_and_sums_to_a_hundred_percent() -> None:
    report = sample(gap=5.0).report

    first, *losses, last = ledger.waterfall(report)

    assert (first.name, first.share) == ("Elapsed", "100.0 %")
    assert last.name.startswith("Productive")
    bars = [row.parts[0] for row in (*losses, last)]
    assert sum(bar.width for bar in bars) == pytest.approx(1)
    # Each loss ends where the one before it began, down to exactly the productive time.
    for bar, before in zip(bars[:-1], [1.0, *(bar.begin for bar in bars[:-2])], strict=True):
        assert bar.begin + bar.width == pytest.approx(before)
    assert bars[-2].begin == pytest.approx(bars[-1].width)


def test_the_waterfall_shows_unattributed_even_where_there_is_none() -> None:
    report = sample().report
    assert report["categories"]["unattributed"] == 0

    rows = {row.name: row.share for row in ledger.waterfall(report)}

    assert rows["Unattributed"] == "0.0 %"
    assert "Evaluation" not in rows


def test_the_waterfall_takes_colours_and_definitions_from_the_contract() -> None:
    rows = {row.name: row for row in ledger.waterfall(sample().report)}

    found = [category for category in metrics.CATEGORIES.values() if category.title in rows]
    assert len(found) == len(rows) - 1
    for category in found:
        assert rows[category.title].parts[0].colour == category.colour
        assert category.description in rows[category.title].meaning


def test_each_loss_says_its_time_beside_its_bar_however_thin_it_is() -> None:
    report = sample(gap=5.0).report

    said = {row.name: row.amount for row in ledger.waterfall(report) if row.amount}

    losses = {name: ns for name, ns in report["categories"].items() if ns and name != "productive"}
    assert said == {metrics.category(name).title: duration(ns) for name, ns in losses.items()}


def test_the_colours_of_bars_are_told_in_words_and_lines_keep_their_own_legend() -> None:
    report = sample(live=True).report
    lane = attempts.attempts_lane(report, sample(live=True).intervals, UTC)
    curve = steps.steps_over_time(report, sample(live=True).points, UTC)

    named = plots.bar_colours(lane)

    titles = {category.title: category.colour for category in metrics.CATEGORIES.values()}
    assert named
    assert named.items() <= titles.items()
    assert plots.bar_colours(curve) == {}


def test_productive_time_that_no_checkpoint_holds_is_hatched() -> None:
    report = sample(live=True).report
    productive, at_risk = (
        report["categories"]["productive"],
        report["parts"]["productive"]["at_risk"],
    )

    _, hatched = ledger.waterfall(report)[-1].parts

    assert hatched.hatched
    assert hatched.width == pytest.approx(at_risk / report["elapsed_ns"])
    assert hatched.begin + hatched.width == pytest.approx(productive / report["elapsed_ns"])


def test_a_users_own_category_is_drawn_under_its_name() -> None:
    report = sample().report
    report["categories"] |= {"custom:profiling": 3 * SECOND, "productive": 100 * SECOND}

    assert "profiling" in [row.name for row in ledger.waterfall(report)]


def test_the_lane_draws_every_nanosecond_of_every_attempt_in_its_row() -> None:
    one = sample()

    figure = attempts.attempts_lane(one.report, one.intervals, UTC)

    rows = {
        attempt["attempt"]: f"Attempt {attempt['number']}" for attempt in one.report["attempt_list"]
    }
    expected: dict[str, float] = dict.fromkeys(rows.values(), 0)
    for interval in one.intervals:
        expected[rows[interval["attempt"]]] += (interval["end"] - interval["start"]) / 1_000_000
    found: dict[str, float] = dict.fromkeys(rows.values(), 0)
    bars = [trace for trace in figure.data if trace.type == "bar"]
    for trace in bars:
        for row, width in zip(trace.y, trace.x, strict=True):
            found[row] += width
    assert found == pytest.approx(expected)
    assert {trace.name for trace in bars} == {
        metrics.category(interval["category"]).title for interval in one.intervals
    }


def test_the_lane_keeps_the_newest_rows_of_a_run_with_very_many_attempts() -> None:
    one = sample(faults=tuple(range(26, 399, 4)))
    assert one.report["attempts"] > 90

    figure = attempts.attempts_lane(one.report, one.intervals, UTC)

    rows = {row for trace in figure.data if trace.type == "bar" for row in trace.y}
    assert len(rows) == 40
    assert f"Attempt {one.report['attempts']}" in rows


def test_time_between_attempts_is_drawn_in_the_row_of_the_attempt_it_led_to() -> None:
    rows = [{"attempt": "a", "start": 0}, {"attempt": "b", "start": 30}]

    def between(start: int, end: int) -> dict[str, Any]:
        return {"attempt": None, "start": start, "end": end}

    placed = lanes.in_rows(rows, [between(20, 30), between(60, 70)])

    assert [one["attempt"] for one in placed] == ["b", "b"]
    assert lanes.in_rows([], [between(20, 30)]) == []


def test_ten_thousand_short_intervals_become_few_bars_of_what_filled_the_time() -> None:
    lengths = [("productive", 30_000), *[("restart", 3), ("stalled", 1)] * 5_000]
    intervals = []
    now = START
    for category, seconds in lengths:
        interval = {"start": now, "end": now + seconds * SECOND, "category": category}
        intervals.append(interval | {"part": None, "attempt": "a", "first_step": None})
        intervals[-1] |= {"last_step": None, "amounts": {}}
        now += seconds * SECOND

    bars = lanes.drawn(intervals)

    assert [bar["category"] for bar in bars] == ["productive", "restart"]
    assert (bars[0]["start"], bars[-1]["end"]) == (START, now)
    assert bars[0]["end"] - START == pytest.approx(30_000 * SECOND, rel=0.01)


def test_many_slivers_hide_nothing_and_a_loss_as_short_stays_to_be_seen() -> None:
    lengths = [*[("productive", 1_195), ("checkpoint_save", 5)] * 300, ("restart", 240)]
    intervals: list[dict[str, Any]] = []
    now = START
    for category, seconds in [*lengths, *lengths[:600]]:
        interval = {"start": now, "end": now + seconds * SECOND, "category": category}
        intervals.append(interval | {"part": None, "attempt": "a", "first_step": None})
        intervals[-1] |= {"last_step": None, "amounts": {}}
        now += seconds * SECOND

    bars = lanes.drawn(intervals)

    assert [bar["category"] for bar in bars] == ["productive", "restart", "productive"]


def test_touching_intervals_of_one_kind_are_one_bar() -> None:
    first = {"start": 0, "end": 5, "category": "productive", "part": "durable", "attempt": "a"}
    first |= {"first_step": 1, "last_step": 5, "amounts": {"productive": 4, "data_wait": 1}}
    second = first | {"start": 5, "end": 9, "first_step": 6, "last_step": 9}
    apart = first | {"start": 20, "end": 21, "first_step": 10, "last_step": 10}

    bars = lanes.drawn([apart, second, first])

    assert bars[0]["amounts"] == {"productive": 8, "data_wait": 2}
    assert [(bar["start"], bar["end"], bar["last_step"]) for bar in bars] == [
        (0, 9, 9),
        (20, 21, 10),
    ]


def test_a_rollback_is_a_fall_where_the_new_attempt_starts() -> None:
    report = {
        "attempt_list": [
            {"attempt": "a", "start": 0, "resumed": 0},
            {"attempt": "b", "start": 634, "resumed": 500},
        ]
    }
    points = [
        {"time": 574, "step": 574, "attempt": "a"},
        {"time": 655, "step": 501, "attempt": "b"},
    ]

    corners = steps.curve(report, points)

    assert corners == [(0, 0), (574, 574), (634, 574), (634, 500), (655, 501)]


def test_the_step_curve_falls_once_per_rollback() -> None:
    one = sample()

    done = list(steps.steps_over_time(one.report, one.points, UTC).data[0].y)

    falls = [before - after for before, after in pairwise(done) if after < before]
    assert falls == [rollback["steps"] for rollback in one.report["rollbacks"]]


def test_rollback_distances_are_the_reports() -> None:
    report = sample().report

    bars = recovery.rollback_distance(report).data[0]

    assert list(bars.y) == [rollback["steps"] for rollback in report["rollbacks"]]


def test_an_incident_whose_rollback_is_not_known_yet_has_no_bar() -> None:
    report = sample().report
    first, *others = report["incidents"]
    incidents = [{**first, "rollback_steps": None, "rollback_ns": None}, *others]

    bars = recovery.rollback_distance({**report, "incidents": incidents}).data[0]

    assert list(bars.x) == [str(one["number"]) for one in others]


def test_freshness_is_a_saw_tooth_that_ends_at_the_end() -> None:
    report = {
        "as_of": 99,
        "end": 35,
        "checkpoints": [
            {"durable_since": 30, "state": "claimed"},
            {"durable_since": None, "state": "scheduled"},
            {"durable_since": 20, "state": "revoked"},
            {"durable_since": 10, "state": "verified"},
        ],
    }

    assert checkpoints.freshness(report) == [(10, 0), (30, 20), (30, 0), (35, 5)]


def test_a_run_without_a_checkpoint_has_no_freshness() -> None:
    assert checkpoints.freshness({"as_of": 99, "end": None, "checkpoints": []}) == []


def test_times_are_the_readers() -> None:
    one = sample()
    zone = timezone(timedelta(hours=2))

    axis = steps.steps_over_time(one.report, one.points, zone).layout.xaxis

    assert axis.range[0] == "2025-11-29T18:34:08"
