"""The figures of many runs, against sums by hand."""

import pytest

from fleet_figures import incident, share, worked_example
from headway.events import CAUSES
from headway.fleet.past import past_incidents
from headway.fleet.shares import share_of, strip_of
from headway.fleet.sides import SIDES, is_failure, side_of
from headway.fleet.spans import Span
from headway.fleet.totals import GPU_HOUR, Price, totals
from headway.report import report
from reckoning import in_seconds
from timeline import SECOND, at

EURO = Price(per_gpu_hour=2.0, currency="EUR")


def test_two_runs_are_weighed_by_their_gpu_time() -> None:
    runs = [share("a", gpus=2), share("b", gpus=8, seconds={"productive": 50, "stalled": 50})]

    found = totals(runs, None)

    # 80 x 2 + 50 x 8 = 560 of 100 x 2 + 100 x 8 = 1000 GPU-seconds, and 130 of 200 seconds
    assert found["gpu_time"]["training_goodput"] == {"low": 0.56, "high": 0.56}
    assert found["wall_time"]["training_goodput"] == {"low": 0.65, "high": 0.65}
    assert found["lost_gpu_ns"] == {"low": 440 * SECOND, "high": 440 * SECOND}
    assert (found["runs"], found["attempts"], found["lost_cost"]) == (2, 4, None)


def test_time_without_evidence_makes_the_loss_a_range_and_so_its_price() -> None:
    hours = {"productive": 3_600 * 7, "restart": 3_600 * 2, "unattributed": 3_600}

    found = totals([share(seconds=hours, gpus=10)], EURO)

    assert found["lost_gpu_ns"] == {"low": 20 * GPU_HOUR, "high": 30 * GPU_HOUR}
    assert found["lost_cost"] == {"low": 40.0, "high": 60.0}
    assert found["gpu_time"]["training_goodput"] == {"low": 0.7, "high": 0.8}


def test_what_a_run_calls_good_is_good_for_that_run_alone() -> None:
    seconds = {"productive": 50, "custom:check": 50}

    found = totals([share("a", seconds=seconds, training_good=("custom:check",))], None)
    other = totals([share("b", seconds=seconds)], None)

    assert found["lost_gpu_ns"]["low"] == 0
    assert other["lost_gpu_ns"]["low"] == 100 * SECOND


def test_the_mean_time_between_failures_leaves_stops_out_and_says_how_sure_it_is() -> None:
    known = [incident("a"), incident("b", cause="gpu_fault"), incident("c", cause="preemption")]

    found = totals([share(incidents=known)], None)["mtbf"]

    # 80 s up; two failures, of which Garwood's interval is 0.2422 to 7.2247
    assert (found["failures"], found["ns"]) == (2, 40 * SECOND)
    assert found["low_ns"] / SECOND == pytest.approx(80 / 7.2247, abs=1e-3)
    assert found["high_ns"] / SECOND == pytest.approx(80 / 0.2422, abs=1e-1)


def test_without_a_failure_only_the_least_time_between_them_is_known() -> None:
    found = totals([share()], None)["mtbf"]

    assert (found["ns"], found["high_ns"]) == (None, None)
    assert found["low_ns"] / SECOND == pytest.approx(80 / 3.6889, abs=1e-3)


def test_losses_are_told_by_side_and_by_cause() -> None:
    known = [
        incident("a", cause="gpu_fault", lost_gpu=70),
        incident("b", cause="node_lost", lost_gpu=10),
        incident("c", cause="hang", lost_gpu=30),
        incident("d", cause="gpu_fault", lost_gpu=5),
    ]

    found = totals([share(incidents=known)], None)

    assert found["sides"] == [
        {"side": "machines", "incidents": 3, "lost_gpu_ns": 85},
        {"side": "undecided", "incidents": 1, "lost_gpu_ns": 30},
    ]
    assert [(one["cause"], one["lost_gpu_ns"]) for one in found["causes"]] == [
        ("gpu_fault", 75),
        ("hang", 30),
        ("node_lost", 10),
    ]


def test_recovery_times_are_those_of_recovered_incidents() -> None:
    times = [3, 5, 8, 100]
    known = [incident(str(one), recovered=one * SECOND) for one in times]
    known.append(incident("open", recovered=None, outcome="open"))

    found = totals([share(incidents=known)], None)

    assert found["recovered_ns"] == {
        "count": 4,
        "p50": 5 * SECOND,
        "p95": 100 * SECOND,
        "max": 100 * SECOND,
    }


def test_no_run_has_no_ratio_and_no_loss() -> None:
    found = totals([], EURO)

    assert found["gpu_time"]["training_goodput"] == {"low": None, "high": None}
    assert found["lost_cost"] == {"low": 0.0, "high": 0.0}
    assert found["mtbf"]["low_ns"] is None


def test_the_worked_example_adds_what_its_report_says() -> None:
    ledger = worked_example()
    told = report(ledger)
    past = past_incidents(told)

    whole = share_of(ledger, told, past, Span(at(0), at(754) + 1))
    found = totals([whole], None)

    assert in_seconds(whole.gpu) == {
        "productive": 2400,
        "rolled_back": 296,
        "stalled": 240,
        "restart": 48,
        "checkpoint_load": 32,
    }
    assert found["lost_gpu_ns"]["low"] == 4 * 154 * SECOND
    assert found["sides"] == [
        {"side": "undecided", "incidents": 1, "lost_gpu_ns": 4 * 154 * SECOND}
    ]
    assert found["mtbf"]["ns"] == 682 * SECOND


def test_a_window_cuts_time_attempts_and_incidents() -> None:
    ledger = worked_example()
    told = report(ledger)
    past = past_incidents(told)

    before = share_of(ledger, told, past, Span(at(0), at(574)))
    after = share_of(ledger, told, past, Span(at(574), at(800)))

    assert in_seconds(before.wall) == {"productive": 500, "rolled_back": 74}
    assert (before.attempts, len(before.incidents)) == (1, 0)
    assert in_seconds(after.gpu) == {
        "productive": 400,
        "stalled": 240,
        "restart": 48,
        "checkpoint_load": 32,
    }
    assert (after.attempts, len(after.incidents)) == (1, 1)


def test_a_strip_shows_a_loss_from_a_quarter_of_its_slot_on() -> None:
    strip = strip_of(worked_example(), Span(at(0), at(800)), 4)

    # slots of 188.5 s: productive; productive; 64.5 of 188.5 rolled back ... to 565.5, then
    # 8.5 rolled back, 60 stalled, 12 restart, 8 load, 100 productive
    names = [name for _, _, name in strip]
    assert names == ["productive", "rolled_back", "stalled"]
    assert (strip[0][0], strip[-1][1]) == (at(0), at(754))
    assert strip_of(worked_example(), Span(at(900), at(950)), 4) == []


def test_every_cause_has_one_side() -> None:
    listed = [cause for side in SIDES.values() for cause in side.causes]

    assert sorted(listed) == sorted(CAUSES)
    assert side_of("gpu_fault") == "machines"
    assert [cause for cause in CAUSES if not is_failure(cause)] == [
        "preemption",
        "time_limit",
        "operator",
    ]
