"""Lines of the same frameworks that no excerpt holds: other prefixes, versions and file kinds."""

import json

import pytest

from imported import one_run, written


def megatron(step, prefix="", more=""):
    return (
        f"{prefix} [2026-01-01 00:00:{step:02}] iteration {step:8d}/    1000 | consumed samples: "
        f"{step * 16:12d} | elapsed time per iteration (ms): 1000.0 | learning rate: 1.0E-05 | "
        f"global batch size:    16 | lm loss: 2.000000E+00 | {more}number of skipped iterations:   "
        "0 | number of nan iterations:   0 |"
    )


def titan(step, tag, speed):
    return (
        f"[rank0]:{tag}2026-01-01 00:00:{step:02},100 - root - INFO - \x1b[31mstep: {step:2}  "
        f"\x1b[32mloss:  2.5000  \x1b[33mmemory:  9.75GiB(12.30%)  \x1b[34m{speed}: 1,234  "
        "\x1b[35mmfu: 9.10%\x1b[39m"
    )


LINES = {
    "srun --label": [megatron(n, "0: ") for n in range(1, 6)],
    "torchrun's rank": [megatron(n, "[rank0]:") for n in range(1, 6)],
    "torchrun --tee": [megatron(n, "[default3]:") for n in range(1, 6)],
    "multi-token prediction": [megatron(n, more="mtp_1 loss: 3.0E+00 | ") for n in range(1, 6)],
    "torchtitan of 2024": [titan(n, "", "wps") for n in range(1, 6)],
    "torchtitan of 2026": [titan(n, "[titan] ", "tps") for n in range(1, 6)],
    "NeMo 1 without a rate": [
        f"Epoch 0: :   {n}%|#    | {n}/100 [00:0{n}<01:39, v_num=0, reduced_train_loss=2.000, "
        f"global_step={n - 1}.000, consumed_samples={8 * n}.0, train_step_timing in s=1.000]"
        for n in range(1, 6)
    ],
    "NeMo 2": [
        f"[NeMo I 2026-01-01 00:00:0{n} nemo_logging:393] Training epoch 0, iteration {n - 1}/99 | "
        f"lr: 2e-06 | global_batch_size: 8 | global_step: {n - 1} | reduced_train_loss: 4.7 | "
        f"train_step_timing in s: 1.0 | consumed_samples: {8 * n}"
        for n in range(1, 6)
    ],
    "MaxText": [
        f"completed step: {n - 1}, seconds: 1.000, TFLOP/s/device: 237.056, "
        "Tokens/s/device: 9448.085, total_weights: 29413, loss: 14.140"
        for n in range(1, 6)
    ],
    "Lightning redrawn": [
        "\r".join(
            f"Epoch 0:  {n}0%|#         | {n}/10 [00:0{n}<00:09,  1.00it/s, v_num=1]"
            for n in range(1, 6)
        )
    ],
}


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_five_steps_are_five_steps(capsys, tmp_path, lines):
    run = one_run(capsys, written(tmp_path, "\n".join(lines) + "\n"))

    assert [(a["first_step"], a["last_step"]) for a in run["attempt_list"]] == [(1, 5)]
    assert run["steps"]["rework"] == 0
    assert run["incidents"] == []


def test_a_trainer_state_tells_its_steps_and_no_time(capsys, tmp_path):
    history = [{"step": 5 * n, "loss": 2.0, "epoch": n / 10} for n in range(1, 11)]
    history += [{"step": 50, "eval_loss": 2.1}, {"step": "x", "loss": 1}, None]
    state = {"global_step": 50, "max_steps": 100, "log_history": history}

    run = one_run(capsys, written(tmp_path, json.dumps(state, indent=2), "trainer_state.json"))

    assert (run["steps"]["highest"], run["steps"]["target"]) == (50, 100)
    assert run["log"]["log_interval_steps"] == 5
    assert not run["log"]["timed"]
    assert run["training_goodput"]["low"] is None


def test_srun_names_the_rank_that_its_node_had_no_memory_for(capsys, tmp_path):
    lines = [megatron(n) for n in range(1, 6)]
    lines += [
        "srun: error: node-a: tasks 2-3: Out Of Memory",
        "srun: error: node-a: task 0: Killed",
    ]

    run = one_run(capsys, written(tmp_path, "\n".join(lines) + "\n"))

    (fault,) = run["log"]["faults"]
    assert (fault["kind"], fault["rank"], fault["node"]) == ("host_oom", 2, "node-a")
    assert [(e["rank"], e["signal"]) for e in run["log"]["exits"]] == [(2, 9), (3, 9), (0, 9)]
    assert [(i["cause"], i["suspect_rank"]) for i in run["incidents"]] == [("host_oom", 2)]


def test_a_job_that_slurm_requeued_goes_on_and_why_stays_unknown(capsys, tmp_path):
    requeue = "slurmstepd: error: *** JOB 7 ON node-a CANCELLED AT {} DUE TO JOB REQUEUE ***"
    lines = [megatron(n) for n in range(1, 6)] + [requeue.format("2026-01-01T00:00:06")]
    lines += [megatron(n).replace("00:00:", "00:10:") for n in range(4, 9)]

    run = one_run(capsys, written(tmp_path, "\n".join(lines) + "\n"))

    assert run["log"]["faults"] == []
    assert run["log"]["requeued"]
    assert [(a["first_step"], a["last_step"]) for a in run["attempt_list"]] == [(1, 5), (4, 8)]
    assert [i["cause"] for i in run["incidents"]] == ["unknown"]
