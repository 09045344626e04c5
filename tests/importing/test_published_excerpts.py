"""Excerpts of public logs give what was derived from them by hand, through the public command.

The numbers come from each excerpt's `expected.json`; what it says must not be concluded is asserted
beside them.
"""

import json
from datetime import datetime

import pytest

from headway.cli import main
from imported import LOGS, SECOND, expected, imported, one_run, spent, utc

GOODPUT = LOGS.parent / "goodput"
DETECTED = [
    ("custom_trainer_slurm_node_failure.log", {"m4", "slurm"}),
    ("hf_trainer_nccl_timeout.log", {"huggingface", "nccl"}),
    ("lightning_slurm_time_limit.log", {"lightning", "slurm"}),
    ("maxtext_nan_loss.log", {"maxtext"}),
    ("megatron_core_torch_dist.log", {"megatron"}),
    ("megatron_deepspeed_exit_idle.log", {"megatron", "slurm"}),
    ("megatron_deepspeed_hang.log", {"megatron", "slurm"}),
    ("megatron_deepspeed_reshape.log", {"megatron"}),
    ("torchrun_sigkill_restart.log", {"openmmlab", "torchrun"}),
    ("torchtitan_async_ckpt.log", {"torchtitan"}),
    ("../goodput/goodput_event_log.jsonl", {"goodput-events"}),
    ("../goodput/goodput_worked_example.csv", {"goodput-events"}),
]


def run_of(capsys, name):
    return one_run(capsys, LOGS / f"{name}.log")


def gaps(run):
    return [list(gap) for gap in run["log"]["excerpt_gaps"]]


@pytest.mark.parametrize(("name", "formats"), DETECTED)
def test_the_formats_of_an_excerpt_are_detected(capsys, name, formats):
    found = imported(capsys, LOGS / name)

    assert set(found["formats"]) == formats
    assert sum(spent(found["runs"][0]).values()) == pytest.approx(
        found["runs"][0]["elapsed_ns"] / SECOND, abs=1e-6
    )


@pytest.mark.parametrize(
    "name", [name.removesuffix(".log") for name, _ in DETECTED if "goodput" not in name]
)
def test_the_numbers_that_all_excerpts_tell_are_told(capsys, name):
    wanted, run = expected(name), run_of(capsys, name)
    log = run["log"]
    told = {
        "step_lines": log["step_lines"],
        "distinct_steps": log["distinct_steps"],
        "first_step_seen": log["first_step_seen"],
        "last_step_seen": log["last_step_seen"],
        "target_steps": log["target_steps"],
        "log_interval_steps": log["log_interval_steps"],
        "skipped_steps": log["skipped_steps"],
        "step_regressions": log["step_regressions"],
        "restarts_seen": log["restarts_seen"],
        "restarts": log["restarts_seen"],
        "requeued": log["requeued"],
        "ranks_out_of_step": log["ranks_out_of_step"],
        "steps_after_signal": log["steps_after_stop"],
        "elapsed_s_this_job": log["elapsed_counter_s"],
        "cumulative_step_time_s": log["cumulative_step_time_s"],
        "steps_completed": run["steps"]["surviving"],
        "rework_steps": run["steps"]["rework"],
        "work_at_risk_steps": run["steps_at_risk"],
        "freshness_steps_at_end": run["steps_at_risk"],
        "checkpoint_freshness_at_end_steps": run["steps_at_risk"],
        "gaps_are_excerpt_gaps": gaps(run),
    }
    common = sorted(told.keys() & wanted.keys())

    assert common
    assert {key: told[key] for key in common} == {key: wanted[key] for key in common}
    if "checkpoint_saves_seen" in wanted:
        assert len(log["checkpoint_saves"]) == wanted["checkpoint_saves_seen"]
    if "failures_seen" in wanted:
        assert len(log["faults"]) == wanted["failures_seen"]


def test_a_reshape_is_seven_attempts_that_redo_thirteen_steps(capsys):
    wanted, run = (
        expected("megatron_deepspeed_reshape"),
        run_of(capsys, "megatron_deepspeed_reshape"),
    )

    assert run["attempts"] == wanted["attempts_min"]
    told = [
        (list(range(a["first_step"], a["last_step"] + 1)), pytest.approx(a["step_time_s"]))
        for a in run["log"]["attempts"]
    ]
    assert [(a["steps"], a["elapsed_s"]) for a in wanted["attempts"]] == told
    assert {a["resumed"] for a in run["attempt_list"]} == {wanted["restored_from_step"]}
    assert run["steps"]["executed"] - run["steps"]["rework"] == wanted["net_progress_steps"]
    assert spent(run) == pytest.approx(
        {
            "productive": wanted["step_time_s"]["surviving_attempt"],
            "rolled_back": wanted["step_time_s"]["rework"],
        }
    )
    assert not run["log"]["timed"]
    # the same data is replayed, which is no stall
    assert "stalled" not in spent(run)
    assert {incident["cause"] for incident in run["incidents"]} <= {"unknown"}


def test_a_gap_of_an_excerpt_is_no_restart_and_a_pulse_no_progress(capsys):
    wanted, run = expected("megatron_deepspeed_hang"), run_of(capsys, "megatron_deepspeed_hang")
    hang = wanted["hang"]
    (told,) = run["log"]["faults"]

    assert run["attempts"] == 1
    assert run["steps"]["rework"] == 0
    assert (told["kind"], told["phase"], told["last_step"]) == ("hang", "evaluation", 45000)
    assert told["ran_for_s"] == hang["no_progress_at_least_s"]
    assert utc(told["started"]) == datetime.fromisoformat(hang["from"])
    assert utc(told["detected"]) == datetime.fromisoformat(hang["to"])
    assert spent(run)["stalled"] == hang["no_progress_at_least_s"]
    assert [i["cause"] for i in run["incidents"]] == ["hang"]
    running = next(job for job in run["log"]["jobs"] if job["state"] == "running")
    assert (running["job"], running["started"]) == ("1528763", wanted["job"]["started"])
    # what waits is another job
    assert [job["job"] for job in run["log"]["jobs"] if job["state"] == "another waits"] == [
        "1528874_[1-3%1]"
    ]
    assert run["log"]["samples"] == {
        "per_step": wanted["consumed_samples_linear"]["samples_per_step"],
        "linear": True,
    }
    odd = {one["type"]: one for one in run["log"]["anomalies"]}
    assert odd["loss_spike"]["first_step"] == 31219
    assert odd["loss_spike"]["worst"] == 5.098124
    assert odd["slow_down"]["first_step"] == 42783
    assert odd["slow_down"]["worst"] == pytest.approx(111.14)


def test_a_planned_exit_is_no_failure_and_the_wait_after_it_no_training(capsys):
    name = "megatron_deepspeed_exit_idle"
    wanted, run = expected(name), run_of(capsys, name)
    (save,), (exit_,) = run["log"]["checkpoint_saves"], run["log"]["exits"]

    assert run["log"]["highest_step_completed"] == wanted["last_step_completed"]
    assert (save["step"], save["durable"]) == (33241, True)
    assert save["duration_s"] == wanted["checkpoint_saves"][0]["duration_s"]
    assert exit_["class"] == "planned_exit"
    assert utc(exit_["at"]) == datetime.fromisoformat(wanted["exits"][0]["at"])
    assert exit_["ran_s"] / 60 == pytest.approx(wanted["exits"][0]["ran_minutes"])
    assert abs((utc(exit_["started_about"]) - datetime(2021, 8, 7, 5, 10, 49)).total_seconds()) <= 1
    assert run["steps_at_risk"] == wanted["steps_lost_at_exit"]
    assert spent(run)["down"] == wanted["infrastructure_wait"]["at_least_s"]
    assert utc(run["as_of"]) == datetime(2021, 8, 8, 3, 56, 54)
    queued = next(job for job in run["log"]["jobs"] if job["state"] == "queued")
    assert queued["expected_start"] == wanted["infrastructure_wait"]["predicted_start"]
    assert [utc(at) for at in run["log"]["alerts"]] == [
        datetime.fromisoformat(one["at"]) for one in wanted["alerts"]
    ]
    assert run["incidents"] == []
    assert run["state"] == "running"  # a planned exit below the target does not end a run
    assert [odd["type"] for odd in run["log"]["anomalies"]] == ["loss_jump"]


def test_the_times_of_a_megatron_log_add_up(capsys):
    wanted, run = expected("megatron_core_torch_dist"), run_of(capsys, "megatron_core_torch_dist")
    time = wanted["time_s"]

    assert run["log"]["step_time_s"] == pytest.approx(time["step_time_sum"])
    assert spent(run)["evaluation"] == pytest.approx(time["eval_sum"])
    assert spent(run)["checkpoint_save"] == pytest.approx(time["save_sum"])
    assert run["elapsed_ns"] / SECOND == pytest.approx(time["accounted"], abs=1)
    assert 0.932 <= run["training_goodput"]["low"] <= run["training_goodput"]["high"] <= 0.940
    assert [(s["step"], s["durable"], s["duration_s"]) for s in run["log"]["checkpoint_saves"]] == [
        (s["step"], s["durable"], s["duration_s"]) for s in wanted["checkpoint_saves"]
    ]
    assert [(one["step"], one["s"]) for one in run["log"]["evaluations"]] == [
        (one["step"], one["s"]) for one in wanted["evals"]
    ]
    applied = run["steps"]["executed"] - run["log"]["skipped_steps"]
    assert applied == wanted["optimizer_steps_applied"]
    assert run["incidents"] == []  # the end of a file is no crash
    assert run["state"] == "running"


def test_an_asynchronous_save_holds_the_step_of_its_name(capsys):
    wanted, run = expected("torchtitan_async_ckpt"), run_of(capsys, "torchtitan_async_ckpt")
    told = run["log"]["checkpoint_saves"]

    assert [(s["step"], s["durable"]) for s in told] == [(1, True), (400, True)]
    assert told[0]["duration_s"] == wanted["checkpoint_requests"][0]["seconds"]
    assert [utc(s["acknowledged"]).isoformat(timespec="milliseconds") for s in told] == [
        s["acknowledged"] for s in wanted["checkpoint_requests"]
    ]
    assert run["checkpoint"]["step"] == 400
    assert (run["attempts"], run["steps"]["rework"], run["incidents"]) == (1, 0, [])
    assert "stalled" not in spent(run)


def test_a_killed_rank_is_one_restart_of_three(capsys):
    wanted, run = expected("torchrun_sigkill_restart"), run_of(capsys, "torchrun_sigkill_restart")
    (exit_,) = run["log"]["exits"]

    assert run["attempts"] == wanted["attempts"]
    assert run["log"]["restart_budget"] == {
        "remaining": wanted["attempts_left_after"],
        "limit": wanted["max_restarts"],
    }
    assert run["log"]["restart_count"] == wanted["restart_count_seen"]
    assert (exit_["rank"], exit_["signal"], exit_["exit_code"]) == (1, 9, -9)
    (incident,) = run["incidents"]
    assert (incident["cause"], incident["suspect_rank"]) == ("killed", 1)
    assert incident["rollback_steps"] is None
    assert run["checkpoint"] is None


def test_a_hang_began_before_its_watchdog_fired(capsys):
    wanted, run = expected("hf_trainer_nccl_timeout"), run_of(capsys, "hf_trainer_nccl_timeout")
    first, second = run["log"]["faults"]

    assert run["log"]["highest_step_completed"] == wanted["last_step_completed"]
    assert (first["kind"], first["rank"], second["rank"]) == ("collective_timeout", 0, 1)
    assert f"{utc(first['detected']):%m-%dT%H:%M:%S.%f}" == wanted["failure"]["detected_at"]
    began = datetime.fromisoformat(
        f"{utc(first['started']).year}-{wanted['hang']['started_about']}"
    )
    assert abs((utc(first["started"]) - began).total_seconds()) < 0.001
    assert first["ran_for_s"] == wanted["hang"]["detection_latency_s"]
    assert run["log"]["elapsed_counter_s"] == wanted["progress_elapsed_s_at_last"]
    assert run["log"]["collectives"]["0"] == {
        "sequence": 1516,
        "elements": 25427968,
        "completed": 1515,
    }
    assert run["log"]["collectives"]["1"] == {"sequence": 1517, "elements": 1}
    assert spent(run)["stalled"] == pytest.approx(600.057, abs=0.001)
    (incident,) = run["incidents"]
    assert incident["cause"] == "collective_timeout"
    assert any("ranks out of step" in str(item) for item in incident["evidence"])


def test_a_time_limit_is_no_crash_and_a_redraw_no_step(capsys):
    wanted, run = (
        expected("lightning_slurm_time_limit"),
        run_of(capsys, "lightning_slurm_time_limit"),
    )
    (stop,) = run["log"]["stops"]

    assert run["log"]["progress_lines"] == wanted["progress_lines"]
    assert run["log"]["distinct_steps"] == 3
    assert run["log"]["elapsed_counter_s"] == wanted["epoch_elapsed_s_at_last"]
    assert (stop["reason"], stop["handled"]) == ("time_limit", wanted["signal"]["handled"])
    assert utc(stop["at"]) == datetime.fromisoformat(wanted["failure"]["at"])
    assert [i["cause"] for i in run["incidents"]] == ["time_limit"]
    assert run["log"]["faults"] == []


def test_the_failed_node_is_not_the_first_of_the_step(capsys):
    name = "custom_trainer_slurm_node_failure"
    wanted, run = expected(name), run_of(capsys, name)
    (fault,) = run["log"]["faults"]
    (incident,) = run["incidents"]

    assert (fault["kind"], fault["node"]) == ("lost_node", wanted["failure"]["node"])
    assert utc(fault["detected"]) == datetime.fromisoformat(wanted["failure"]["at"])
    assert (incident["cause"], incident["suspect_node"]) == ("node_lost", "node-b")
    assert run["log"]["notes"][0] == "evaluation after step 2500 finished"
    assert run["training_goodput"]["high"] <= 1
    low, high = wanted["steps_in_this_job_range"]
    assert low < run["log"]["steps_in_job_at_most"] <= high


def test_losses_that_are_no_numbers_cost_the_infrastructure_nothing(capsys):
    wanted, run = expected("maxtext_nan_loss"), run_of(capsys, "maxtext_nan_loss")
    (odd,) = run["log"]["anomalies"]

    assert (odd["type"], odd["first_step"], odd["lines"]) == ("nan_loss", 9, 23)
    assert run["infrastructure_goodput"]["low"] == 1
    assert run["incidents"] == []
    # of the steps after the first the time between the lines counts, not that of the dispatch
    assert spent(run)["productive"] == pytest.approx(
        wanted["compile_step"]["seconds"] + wanted["wall_s_first_to_last_line"], abs=0.01
    )


def test_an_event_log_gives_its_loads_saves_and_a_rollback_that_is_a_range(capsys):
    wanted = json.loads((GOODPUT / "goodput_event_log.expected.json").read_text())
    run = one_run(capsys, GOODPUT / "goodput_event_log.jsonl")
    log = run["log"]

    assert len(log["checkpoint_saves"]) == wanted["checkpoints_saved"]
    assert len(log["checkpoint_loads"]) == wanted["checkpoints_loaded"]
    assert len(log["exits"]) == wanted["terminations"]
    assert run["attempts"] == wanted["job_starts"]
    assert run["elapsed_ns"] / SECOND == pytest.approx(wanted["total_s"])
    first, second = run["attempt_list"]
    assert utc(first["start"]) == datetime.fromisoformat(wanted["attempt_1"]["start"])
    assert (first["last_step"], second["resumed"], second["last_step"]) == (4000, 4000, 10000)
    gap = (second["start"] - first["end"]) / SECOND
    assert gap == pytest.approx(wanted["attempt_2"]["gap_before_start_s"])
    assert spent(run)["checkpoint_load"] == pytest.approx(
        wanted["attempt_1"]["loaded_at_s"] + wanted["attempt_2"]["load_s"]
    )
    assert spent(run)["down"] == pytest.approx(wanted["recovery_s"]["termination_to_restart"])
    (rollback,) = run["rollbacks"]
    assert rollback["steps"] is None  # never 0 as a fact
    assert rollback["steps_range"] == wanted["rollback_steps"]["range"]
    assert main(["import", "auto", str(GOODPUT / "goodput_event_log.jsonl")]) == 0
    assert "{:,} to {:,}".format(*rollback["steps_range"]) in capsys.readouterr().out


def test_a_worked_example_has_its_published_parts(capsys):
    wanted = json.loads((GOODPUT / "goodput_worked_example.expected.json").read_text())
    run = one_run(capsys, GOODPUT / "goodput_worked_example.csv")
    published, checks = wanted["published"], wanted["checks"]
    minutes = {name: seconds / 60 for name, seconds in spent(run).items()}

    assert sum(minutes.values()) == wanted["total"]
    assert minutes["checkpoint_load"] == published["checkpoint_loading"]
    assert minutes["checkpoint_save"] == published["checkpoint_saving"]
    assert minutes["rolled_back"] == published["training_progress_loss"]
    assert minutes["down"] == published["job_restart"]
    effective = published["effective_computation"] + published["training_slowdown"]
    assert minutes["productive"] == effective
    assert run["log"]["restarts_seen"] == checks["restarts"]
    assert [one["resumed"] for one in run["attempt_list"]] == [25, 50]
    assert run["steps"]["rework"] == checks["rollback_steps"]
    assert run["state"] == "completed"
    assert not run["log"]["timed"]
