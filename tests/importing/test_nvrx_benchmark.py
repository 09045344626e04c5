"""The published NVRx benchmark's three runs, rebuilt in its own log format, come back."""

import json

import pytest

from benchmark_log import benchmark_log
from headway.simulate import simulate
from headway.simulate.plan import SECOND
from headway.simulate.presets import benchmark
from imported import imported, one_run, spent, written

EXACT = [("in-process", 6, 10, 0), ("in-process", 2, 10, 60), ("launcher", 4, 17, 0)]
EXACT += [("launcher", 1, 17, 60)]


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
    assert [one["rollback_steps_range"][0] for one in run["incidents"]] == [62, 239, 74, 320, 29]
    assert run["attempts"] == 1 + 5 * attempts
    assert run["state"] == "completed"


def test_of_containers_the_log_does_not_tell_the_restart_from_the_wait(capsys, tmp_path):
    made, log, _ = rebuilt(tmp_path, "baseline", 3, 270, 0)

    run = one_run(capsys, log)

    true = {name: time / SECOND for name, time in made.truth.categories.items()}
    found = spent(run)
    for name in ("productive", "rolled_back", "checkpoint_save"):
        assert found[name] == pytest.approx(true[name], abs=0.005)
    outage = found["restart"] + found["down"]
    assert outage == pytest.approx(true["restart"] + true["down"], abs=0.02)
    assert run["infrastructure_goodput"]["low"] == pytest.approx(2094.26 / 6144.26, abs=1e-4)


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
    assert "never subtracted" in training["why"]
    assert told["recovery_seconds_per_fault"]["theirs"] == pytest.approx(75)
    assert told["recovery_seconds_per_fault"]["ours"] == pytest.approx(80)


def test_results_alone_are_put_right_from_their_own_numbers(capsys, tmp_path):
    _, _, results = rebuilt(tmp_path, "baseline", 3, 270, 0)
    path = written(tmp_path, json.dumps(results), "results.json")

    (run,) = imported(capsys, path, kind="nvrx-benchmark")["runs"]

    told = {one["figure"]: one for one in run["differences"]}
    # shutdowns of 205, 475 and 745 s and 65 s of start each: 1620 s instead of 810 s per fault
    assert told["infra_goodput_pct"]["theirs"] < 0
    assert told["infra_goodput_pct"]["ours"] == pytest.approx(100 * 2094.26 / 6144.26)
    assert told["training_goodput_pct"]["ours"] == pytest.approx(100 * 730 / 6144.26)
    assert told["recovery_seconds_per_fault"]["ours"] == pytest.approx(810)
