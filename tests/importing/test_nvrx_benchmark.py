"""The published NVRx benchmark's three runs, rebuilt in its own log format, come back."""

import json
from dataclasses import replace

import pytest

from benchmark_log import benchmark_log
from headway.cli import main
from headway.importing.benchmark_figures import outages
from headway.simulate import simulate
from headway.simulate.plan import SECOND
from headway.simulate.presets import benchmark
from imported import imported, one_run, spent, written

EXACT = [("in-process", 6, 10, 0), ("in-process", 2, 10, 60), ("launcher", 4, 17, 0)]
EXACT += [("launcher", 1, 17, 60)]
ALL = ["avg_recovery_time_seconds", "avg_step_time_seconds", "infra_goodput_pct"]
ALL += ["training_goodput_pct", "wasted_steps"]


def rebuilt(tmp_path, mode, attempts, attempt, detection):
    made = simulate(benchmark(mode, attempts, attempt * SECOND, detection * SECOND))
    text, results = benchmark_log(made, mode)
    return made, written(tmp_path, text), results


@pytest.mark.parametrize(("mode", "attempts", "attempt", "detection"), EXACT)
def test_the_ledger_of_a_rebuilt_run_is_the_true_one(
    capsys, tmp_path, mode, attempts, attempt, detection
):
    made, log, _ = rebuilt(tmp_path, mode, attempts, attempt, detection)

    run = one_run(capsys, log)

    true = {name: time / SECOND for name, time in made.truth.categories.items()}
    assert spent(run) == pytest.approx(true, abs=0.005)  # lines are stamped to the millisecond
    assert run["steps"]["rework"] == 724
    assert [one["rollback_steps"] for one in run["incidents"]] == [62, 239, 74, 320, 29]
    assert run["attempts"] == 1 + 5 * attempts
    assert run["state"] == "completed"


def test_of_containers_the_log_tells_all_but_the_seconds_in_which_they_end(capsys, tmp_path):
    made, log, _ = rebuilt(tmp_path, "baseline", 3, 270, 0)

    run = one_run(capsys, log)

    true = {name: time / SECOND for name, time in made.truth.categories.items() if time}
    # each of 15 containers takes 5 s to end, of which no line tells: a restart in truth, down here
    true["restart"] -= 15 * 5
    true["down"] += 15 * 5
    assert spent(run) == pytest.approx(true, abs=0.02)
    assert run["infrastructure_goodput"]["low"] == pytest.approx(2094.26 / 6144.26, abs=1e-4)
    assert run["steps"]["rework"] == 724
    assert run["attempts"] == 16
    assert run["state"] == "completed"


def with_the_hang(mode, attempts, attempt):
    """The third fault of the published runs under a launcher and in containers was a hang."""
    plan = benchmark(mode, attempts, attempt * SECOND, 60 * SECOND)
    hang = replace(plan.troubles[0], label="hang", cause="hang", symptom="hang")
    strikes = [replace(s, trouble="hang") if s.after_step == 574 else s for s in plan.strikes]
    return replace(plan, troubles=(*plan.troubles, hang), strikes=tuple(strikes))


@pytest.mark.parametrize(
    ("mode", "attempts", "attempt", "unseen"), [("launcher", 1, 17, 0), ("baseline", 3, 270, 75)]
)
def test_the_hang_of_the_published_schedule_is_a_stall_until_somebody_notices(
    capsys, tmp_path, mode, attempts, attempt, unseen
):
    made = simulate(with_the_hang(mode, attempts, attempt))
    text, _ = benchmark_log(made, mode)

    run = one_run(capsys, written(tmp_path, text))

    true = {name: time / SECOND for name, time in made.truth.categories.items() if time}
    assert true["stalled"] == 5 * 60
    if unseen:
        true["restart"] -= unseen
        true["down"] += unseen
    assert spent(run) == pytest.approx(true, abs=0.02)
    assert run["steps"]["rework"] == 724
    assert [one["cause"] for one in run["incidents"]][2] == "hang"


def test_its_own_figures_stand_beside_ours_with_the_reason(capsys, tmp_path):
    # 10 s of start after each restart, 60 s until the first: two attempts in a row count 60 + 10
    # and 70 + 10, 750 s in all for 5 outages of 80 s; 2494.26 s in all, 1100 s of them saves
    _, log, results = rebuilt(tmp_path, "in-process", 2, 10, 60)
    path = written(tmp_path, json.dumps(results), "results.json")

    run = one_run(capsys, log, path)

    told = {one["figure"]: one for one in run["differences"]}
    training, infra = told["training_goodput_pct"], told["infra_goodput_pct"]
    assert training["theirs"] == pytest.approx(100 * (2494.26 - 1100) / 2494.26)
    assert training["ours"] == pytest.approx(100 * 730 / 2494.26, abs=1e-3)
    assert infra["theirs"] == pytest.approx(100 * (2494.26 - 750) / 2494.26)
    assert infra["ours"] == pytest.approx(100 * (2494.26 - 400) / 2494.26, abs=1e-3)
    assert "outages (400.0 s) and the lost steps (264.3 s)" in training["why"]
    assert "every restart record (750.0 s)" in infra["why"]
    recovery, step = told["avg_recovery_time_seconds"], told["avg_step_time_seconds"]
    assert (recovery["theirs"], recovery["ours"]) == pytest.approx((75, 80))
    assert (step["theirs"], step["ours"]) == pytest.approx((1394.26 / 2000, 0.365), abs=1e-4)
    assert told["wasted_steps"]["why"].startswith("both agree in this run, though ")


@pytest.mark.parametrize(
    ("mode", "attempts", "attempt", "detection", "agree"),
    [
        ("in-process", 6, 10, 0, ["wasted_steps"]),
        ("launcher", 4, 17, 0, ["avg_step_time_seconds", "training_goodput_pct", "wasted_steps"]),
        ("baseline", 3, 270, 0, ["avg_step_time_seconds", "training_goodput_pct", "wasted_steps"]),
        ("launcher", 1, 17, 60, ALL),
    ],
)
def test_of_each_run_the_report_says_which_figures_differ(
    capsys, tmp_path, mode, attempts, attempt, detection, agree
):
    _, log, results = rebuilt(tmp_path, mode, attempts, attempt, detection)
    path = written(tmp_path, json.dumps(results), "results.json")

    run = one_run(capsys, log, path)

    told = {one["figure"]: one for one in run["differences"]}
    assert sorted(told) == ALL
    assert sorted(name for name, one in told.items() if "both agree" in one["why"]) == agree
    assert main(["import", "auto", str(log)]) == 0  # the log prints most of them itself
    text = " ".join(capsys.readouterr().out.split())
    assert f"wasted_steps: {results['wasted_steps']:.1f} published, 724.0 here" in text
    assert text.count("where a restart without a new fault counts") == 1


def test_results_alone_are_put_right_from_their_own_numbers(capsys, tmp_path):
    _, _, results = rebuilt(tmp_path, "baseline", 3, 270, 0)
    path = written(tmp_path, json.dumps(results), "results.json")

    (run,) = imported(capsys, path, kind="nvrx-benchmark")["runs"]

    told = {one["figure"]: one for one in run["differences"]}
    # shutdowns of 205, 475 and 745 s and 65 s of start each: 1620 s instead of 810 s per fault
    assert told["infra_goodput_pct"]["theirs"] < 0
    assert told["infra_goodput_pct"]["ours"] == pytest.approx(100 * 2094.26 / 6144.26)
    assert told["training_goodput_pct"]["ours"] == pytest.approx(100 * 730 / 6144.26)
    assert told["avg_recovery_time_seconds"]["ours"] == pytest.approx(810)


def test_a_longer_outage_after_a_save_is_a_fault_of_its_own():
    first = {"shutdown_seconds": 2.0, "startup_total_seconds": 15.0, "resumed_from_step": 0}
    second = {"shutdown_seconds": 62.0, "startup_total_seconds": 15.0, "resumed_from_step": 500}

    assert outages([first, second]) == [17, 77]
    assert outages([first, second | {"resumed_from_step": 0}]) == [77]
