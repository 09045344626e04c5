"""Logs that tell of a training and not of its steps: what was trained stays unknown."""

import json

import pytest

from headway.cli import main
from imported import one_run, written

LAUNCHER = """\
I0601 08:00:00.000000 9 torch/distributed/elastic/agent/server/api.py:719] [default] Rendezvous'ing worker group
I0601 08:00:10.000000 9 torch/distributed/elastic/agent/server/api.py:719] [default] Starting worker group
E0601 09:00:00.000000 9 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: -9) local_rank: 1 (pid: 20277) of binary: python
I0601 09:00:01.000000 9 torch/distributed/elastic/agent/server/api.py:900] [default] Worker group FAILED. 3/3 attempts left; will restart worker group
I0601 09:00:05.000000 9 torch/distributed/elastic/agent/server/api.py:719] [default] Rendezvous'ing worker group
I0601 09:00:15.000000 9 torch/distributed/elastic/agent/server/api.py:719] [default] Starting worker group
W0601 11:00:00.000000 9 torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal, shutting down workers
"""  # noqa: E501
LOSSES = "".join(
    f"{{'loss': {2 - n / 100:.4f}, 'grad_norm': 4.8, 'learning_rate': 1e-05, 'epoch': {n / 50}}}\n"
    for n in range(1, 20)
)
STATE = {
    "global_step": 20,
    "max_steps": 100,
    "log_history": [{"step": 10, "loss": 1.9, "epoch": 0.2}, {"step": 20, "loss": 1.8}],
}


def test_a_launcher_s_log_alone_does_not_say_that_nothing_was_trained(capsys, tmp_path):
    run = one_run(capsys, written(tmp_path, LAUNCHER))

    assert run["steps"]["executed"] is None
    assert run["failed_starts"] is None
    for name in ("training_goodput", "infrastructure_goodput"):
        assert run[name]["low"] < 0.01
        assert run[name]["high"] > 0.99
    assert sum(run["categories"].values()) == run["elapsed_ns"]
    assert [one["cause"] for one in run["incidents"]] == ["unknown"]
    assert main(["import", "auto", str(tmp_path / "train.log")]) == 0
    assert "no line tells a step" in capsys.readouterr().out


def test_losses_alone_are_refused_with_what_would_tell_the_steps(capsys, tmp_path):
    log = written(tmp_path, LOSSES)

    assert main(["import", "auto", str(log)]) == 2
    assert "trainer_state.json" in capsys.readouterr().err

    state = written(tmp_path, json.dumps(STATE), "trainer_state.json")
    assert one_run(capsys, log, state)["steps"]["highest"] == 20


@pytest.mark.parametrize(
    "more", ["{'train_runtime': 1234.5, 'epoch': 1.0}", "{'eval_runtime': 12.0, 'epoch': 1.0}"]
)
def test_losses_beside_a_duration_leave_the_steps_unknown(capsys, tmp_path, more):
    run = one_run(capsys, written(tmp_path, f"{LOSSES}{more}\n"))

    assert run["log"]["losses_without_step"] == 19
    assert run["steps"]["executed"] is None
    assert run["failed_starts"] is None
    assert not run["training_goodput"]["low"]
