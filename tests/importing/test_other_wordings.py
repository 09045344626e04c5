"""Logs of other versions of the same programs, and what one incident looks like in each."""

from pathlib import Path

import pytest

from imported import LOGS, SECOND, imported, one_run, spent, utc, written

MADE_UP = LOGS / "made_up"


def attempts(run):
    return [(a["resumed"], a["first_step"], a["last_step"]) for a in run["attempt_list"]]


def causes(run):
    return [(i["cause"], i["suspect_rank"]) for i in run["incidents"]]


def test_megatron_core_with_asynchronous_saves_and_a_rank_out_of_memory(capsys):
    run = one_run(capsys, MADE_UP / "megatron_core_async_oom.log")

    assert attempts(run) == [(0, 1, 30), (20, 21, 30)]
    assert causes(run) == [("gpu_oom", 3)]
    assert run["incidents"][0]["rollback_steps_range"] == [10, 15]
    (save,) = run["log"]["checkpoint_saves"]
    assert (save["step"], save["durable"]) == (20, True)
    assert run["log"]["restart_budget"] == {"remaining": 2, "limit": 3}
    assert run["attempt_list"][1]["layer"] == "launcher"
    assert run["attempt_list"][1]["world_size"] == 8
    found = spent(run)
    assert found["checkpoint_save"] == pytest.approx(0.6)  # blocking part alone
    assert found["checkpoint_load"] == pytest.approx(2.5)
    assert found["rolled_back"] == pytest.approx(10, abs=0.1)
    # lines of torchelastic name no year; it is that of Megatron's own stamps
    assert utc(run["start"]).year == 2025


def test_torchtitan_with_colours_whose_saves_the_next_one_proves(capsys):
    run = one_run(capsys, MADE_UP / "torchtitan_sync_restart.log")

    assert attempts(run) == [(0, 1, 40), (20, 21, 40)]
    assert [(s["step"], s["durable"]) for s in run["log"]["checkpoint_saves"]] == [(20, True)]
    assert run["checkpoint"]["step"] == 20
    assert run["state"] == "completed"
    found = spent(run)
    assert (found["checkpoint_save"], found["checkpoint_load"]) == (6, 10)
    assert found["startup"] == 20


def test_a_trainer_s_bar_of_evaluation_is_no_training(capsys):
    run = one_run(capsys, MADE_UP / "hf_trainer_eval_resume.log")

    assert attempts(run) == [(0, 1, 5), (3, 4, 5)]
    assert run["steps"]["target"] == 100
    assert [(s["step"], s["durable"]) for s in run["log"]["checkpoint_saves"]] == [(3, True)]
    assert [one["s"] for one in run["log"]["evaluations"]] == [2.1]
    assert causes(run) == [("exception", None)]  # "killed by signal" in a sentence decides nothing


def test_nemo_counts_from_0_and_stops_for_a_preemption(capsys):
    run = one_run(capsys, MADE_UP / "nemo_preemption.log")

    assert attempts(run) == [(0, 1, 6)]
    assert run["log"]["last_step_seen"] == 5
    assert [stop["reason"] for stop in run["log"]["stops"]] == ["preemption"]
    assert [(s["step"], s["durable"]) for s in run["log"]["checkpoint_saves"]] == [(4, True)]
    assert run["log"]["samples"] == {"per_step": 64.0, "linear": True}


def test_maxtext_s_checkpoint_0_holds_one_step(capsys):
    run = one_run(capsys, MADE_UP / "maxtext_restore.log")

    assert attempts(run) == [(0, 1, 5), (1, 2, 4)]
    assert run["checkpoint"]["step"] == 1
    assert run["steps"]["rework"] == 3


def test_lightning_restores_what_it_never_said_to_be_complete(capsys):
    run = one_run(capsys, MADE_UP / "lightning_restore.log")

    assert [(a["first_step"], a["last_step"]) for a in run["attempt_list"]] == [
        (1, 103),
        (101, 102),
    ]
    assert run["attempt_list"][1]["resumed"] == 100
    assert run["checkpoint"]["step"] == 100  # durable since it was restored
    assert causes(run) == [("network", None)]  # a peer's echo is all that is there


def test_mmengine_counts_iterations_and_validates_between_them(capsys):
    run = one_run(capsys, MADE_UP / "mmengine_iterations.log")

    assert attempts(run) == [(0, 1, 250)]
    assert run["log"]["log_interval_steps"] == 50
    assert [one["step"] for one in run["log"]["evaluations"]] == [200]
    assert run["checkpoint"] is None  # its end is never said


def test_a_failure_table_names_ranks_that_the_agent_s_line_does_not(capsys):
    run = one_run(capsys, MADE_UP / "torchrun_table_two_nodes.log")

    assert sorted(one["rank"] for one in run["log"]["exits"]) == [0, 2]
    assert causes(run) == [("exception", 0)]


def test_a_heartbeat_that_stopped_began_before_its_line(capsys):
    run = one_run(capsys, MADE_UP / "nvrx_heartbeat.log")

    assert causes(run) == [("hang", 3)]
    assert attempts(run) == [(0, 1, 20), (10, 11, 20)]  # two nodes told one failure
    (fault,) = run["log"]["faults"]
    assert fault["ran_for_s"] == 15
    assert spent(run)["stalled"] == pytest.approx(15.01, abs=0.01)


def megatron(first, last, second, *, save=None, total=1000, tail=""):
    lines = []
    for step in range(first, last + 1):
        moment = (
            f"2026-01-01 00:{(second + step - first) // 60:02}:{(second + step - first) % 60:02}"
        )
        lines.append(
            f" [{moment}] iteration {step:8d}/{total:8d} | consumed samples: {step * 16:12d} | "
            "elapsed time per iteration (ms): 1000.0 | lm loss: 2.000000E+00 | number of skipped "
            "iterations:   0 | number of nan iterations:   0 |"
        )
        if step == save:
            lines.append(f"saving checkpoint at iteration {step:7d} to ckpt in torch_dist format")
            lines.append(f"  successfully saved checkpoint from iteration {step:7d} to ckpt")
    return "\n".join(lines) + "\n" + tail


def test_two_runs_in_one_log_are_two_runs(capsys, tmp_path):
    over = "[after training is done] datetime: 2026-01-01 00:00:20\n"
    log = written(tmp_path, megatron(1, 20, 0, total=20, tail=over) + megatron(1, 15, 40, total=20))

    first, second = imported(capsys, log)["runs"]

    assert (first["run"], first["state"], first["attempts"]) == ("train", "completed", 1)
    assert (second["run"], second["attempts"], second["steps"]["rework"]) == ("train-2", 1, 0)


def test_a_restart_from_step_1_without_an_end_is_a_rollback_to_0(capsys, tmp_path):
    run = one_run(capsys, written(tmp_path, megatron(1, 20, 0) + megatron(1, 30, 40)))

    assert run["attempts"] == 2
    assert (run["steps"]["rework"], spent(run)["rolled_back"]) == (20, pytest.approx(20))


def test_files_of_one_run_may_come_in_any_order(capsys, tmp_path):
    begin = written(tmp_path, megatron(1, 20, 0, save=10), "b.log")
    end = written(tmp_path, megatron(11, 30, 40), "a.log")

    run = one_run(capsys, end, begin, more=["--run", "llama"])
    folder = one_run(capsys, tmp_path, more=["--run", "llama"])

    assert attempts(run) == [(0, 1, 20), (10, 11, 30)]
    assert spent(run) == spent(folder)
    assert run["incidents"][0]["rollback_steps"] == 10


def test_ranks_of_their_own_files_are_ranks_of_one_attempt(capsys, tmp_path):
    for rank in range(3):
        written(tmp_path, megatron(1, 20, 0), f"rank{rank}.log")

    run = one_run(capsys, tmp_path)

    assert (run["attempts"], run["steps"]["executed"]) == (1, 20)
    assert spent(run)["productive"] == pytest.approx(20, abs=1)


def test_interleaved_ranks_in_one_file_are_one_attempt(capsys, tmp_path):
    lines = megatron(1, 20, 0).splitlines()
    text = "".join(f"[rank{rank}]:{line}\n" for line in lines for rank in (1, 0, 2))

    run = one_run(capsys, written(tmp_path, text))

    assert (run["attempts"], run["steps"]["executed"], run["steps"]["rework"]) == (1, 20, 0)


def test_a_failed_start_restarts_nothing_that_was_done(capsys, tmp_path):
    start = "using world size: 8, data-parallel size: 8\n"
    broken = "Traceback (most recent call last):\nRuntimeError: no such data\n"
    text = start + broken + start + broken + start + megatron(1, 10, 0)

    run = one_run(capsys, written(tmp_path, text))

    assert run["attempts"] == 3
    assert run["failed_starts"] == 2
    assert run["incidents"][0]["cause"] == "startup_failure"


def test_words_about_a_preemption_do_not_decide(capsys, tmp_path):
    text = megatron(1, 10, 0) + (
        "Job is preempted.\nTraceback (most recent call last):\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    )

    run = one_run(capsys, written(tmp_path, text))

    assert [i["cause"] for i in run["incidents"]] == ["gpu_oom"]
    assert run["log"]["stops"] == []


def test_lines_that_go_on_without_steps_are_a_hang_and_not_progress(capsys, tmp_path):
    beat = (
        "[2026-01-01 0{}:10:00,000] WARNING:torch.distributed.elastic.rendezvous."
        "dynamic_rendezvous:The node 'b' has failed to send a keep-alive heartbeat\n"
    )
    pulse = (
        "[2026-01-01 0{0}:10:00] PULSE: llama is running for 0{0}:10:00 since 2026-01-01T00:00:00 "
    )
    text = megatron(1, 30, 0)
    for hour in range(1, 9):
        text += beat.format(hour) + pulse.format(hour) + "(17 on 'gpu' partition)\n"

    run = one_run(capsys, written(tmp_path, text))

    assert [i["cause"] for i in run["incidents"]] == ["hang"]
    assert spent(run)["stalled"] == pytest.approx(8 * 3600 + 570, abs=2)
    assert run["infrastructure_goodput"]["high"] < 0.01


def test_a_save_that_a_timeout_cut_is_not_durable(capsys, tmp_path):
    cut = (
        "saving checkpoint at iteration      20 to ckpt in torch_dist format\n"
        "[rank1]:[E101 00:11:00.000000000 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLGATHER, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
    ).replace("E101", "E0101")
    text = megatron(1, 20, 0, save=10) + cut
    again = " loading checkpoint from ckpt at iteration 10\n" + megatron(11, 15, 700)

    run = one_run(capsys, written(tmp_path, text + again))

    assert [(s["step"], s["durable"]) for s in run["log"]["checkpoint_saves"]] == [
        (10, True),
        (20, False),
    ]
    (incident,) = run["incidents"]
    assert (incident["cause"], incident["rollback_steps"]) == ("collective_timeout", 10)


def test_restarts_inside_one_process_are_attempts(capsys, tmp_path):
    banner = "[Rank 0] 2026-01-01 00:0{}:30,000 - t - INFO - IN-PROCESS RESTART #{}\n"
    line = "[Rank 0] 2026-01-01 00:0{}:{:02},000 - t - INFO - Step {}, Loss: 2.0, Wall: 1s\n"
    text = ""
    for attempt in range(4):
        text += "".join(line.format(attempt, step, step) for step in (10, 20))
        text += banner.format(attempt, attempt + 1)

    run = one_run(capsys, written(tmp_path, text))

    assert run["attempts"] == 5
    assert [a["layer"] for a in run["attempt_list"][1:]] == ["in_process"] * 4


def test_the_same_file_named_twice_counts_once(capsys, tmp_path):
    log = written(tmp_path, megatron(1, 20, 0))

    assert one_run(capsys, log, log, Path(tmp_path))["steps"]["executed"] == 20


def test_a_log_without_stamps_has_durations_alone_until_somebody_dates_it(capsys, tmp_path):
    text = "".join(line[23:] + "\n" for line in megatron(1, 20, 0).splitlines())
    log = written(tmp_path, text)

    undated = one_run(capsys, log)
    dated = one_run(capsys, log, more=["--start", "2026-02-03T04:05:06Z"])

    assert not undated["log"]["timed"]
    assert undated["elapsed_ns"] == dated["elapsed_ns"] == 20 * SECOND
    assert utc(dated["start"]).isoformat() == "2026-02-03T04:05:06"
