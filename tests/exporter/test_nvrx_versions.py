"""The resilient training under each version of NVRx: restarted in its processes and by ft_launcher.

NVRx 0.4.1 is the installed one; how it restarts in the process is tested more closely elsewhere.
"""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from headway.events import (
    AttemptStarted,
    Dropped,
    Fault,
    Misuse,
    RestartBudget,
    RestartPhase,
    Resumed,
    RunConfigured,
    RunEnded,
)
from headway.ledger import ledger
from headway.report import report
from nvrx_versions import INSTALLED, versions
from training_run import Training, train

pytestmark = pytest.mark.slow

SIZE = ("--steps", "20", "--checkpoint-every", "5")
FT_LAUNCHER = "from nvidia_resiliency_ext.fault_tolerance.launcher import main; main()"


def ft_launcher(folder: Path, **limits: object) -> list[str]:
    """Return the launcher's command; it watches sections and heartbeats with these limits."""
    configuration = folder / "ft.yaml"
    # JSON is YAML
    settings = {"workload_check_interval": 1.0, "log_level": "INFO", **limits}
    configuration.write_text(json.dumps({"fault_tolerance": settings}), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return [
        *("-c", FT_LAUNCHER, "--nnodes", "1", "--nproc-per-node", "2", "--max-restarts", "2"),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "test"),
        *("--ft-cfg-path", str(configuration), "--ft-enable-nic-monitor", "False"),
        *("--monitor-interval", "0.5", "--workers-stop-timeout", "5"),
    ]


def told(training: Training, rank: int, kind: type[Any]) -> list[Any]:
    """Return the events of one kind of a rank."""
    return list(training.of(rank, kind))


def budgets(training: Training, layer: str) -> list[int]:
    """Return the restarts that were left, each time that it was told."""
    found = told(training, 0, RestartBudget)
    return [one.remaining for one in found if one.layer == layer]


def final_report(training: Training) -> dict[str, Any]:
    envelopes = [one for told in training.envelopes.values() for one in told]
    return report(ledger(envelopes, max(one.anchor + one.monotonic for one in envelopes)))


@pytest.mark.parametrize("version", versions("0.6.0"))
def test_an_exception_is_recovered_in_the_process(tmp_path: Path, version: str) -> None:
    fault = ("--fault", "exception", "--fault-step", "8")
    found = train(tmp_path, tmp_path / "spool", *SIZE, *fault, version=version)

    (fault_of_1,) = told(found, 1, Fault)
    assert fault_of_1.kind == "exception"
    assert "Traceback" in fault_of_1.traceback
    assert told(found, 0, Fault) == []
    attempts = [(one.layer, one.iteration) for one in told(found, 0, AttemptStarted)]
    assert attempts == [("launcher", None), ("in_process", 1)]
    assert [one.completed for one in told(found, 0, Resumed)] == [0, 5]
    assert len(told(found, 0, RestartPhase)) == 8
    assert budgets(found, "in_process") == [20, 19]
    assert told(found, 0, Misuse) == told(found, 1, Misuse) == told(found, 0, Dropped) == []
    assert len(told(found, 0, RunEnded)) == 1


@pytest.mark.parametrize("version", versions(INSTALLED))
def test_a_hang_is_found_by_the_section_that_the_step_opened(tmp_path: Path, version: str) -> None:
    launcher = ft_launcher(
        tmp_path,
        initial_rank_heartbeat_timeout=120.0,
        rank_heartbeat_timeout=90.0,
        rank_section_timeouts={"step": 12.0, "model": 90.0, "checkpoint_save": 90.0},
        rank_out_of_section_timeout=90.0,
    )
    fault = ("--fault", "hang", "--fault-step", "8", "--recovery", "none", "--save", "sync")
    found = train(
        tmp_path, tmp_path / "spool", *SIZE, *fault, launcher=launcher, version=version, killed=True
    )

    # Rank 1 hangs between two steps; rank 0 waits for it in the next.
    assert "Section 'step' has been open for" in found.output
    unwatched(found, 2)
    restarted(found)
    guarded = {
        (one["phase"], one["timeout"]): one["ratio"]
        for one in final_report(found)["longest_phases"]
    }
    assert 0 < guarded["step", "launcher.section_timeout.step"] < 1
    assert 0 < guarded["heartbeat", "launcher.heartbeat_timeout"] < 1
    assert 0 < guarded["checkpoint_load", "launcher.out_of_section_timeout"] < 1


@pytest.mark.parametrize("version", versions("0.7.0"))
def test_a_killed_rank_is_started_again_by_the_launcher(tmp_path: Path, version: str) -> None:
    launcher = ft_launcher(
        tmp_path,
        initial_rank_heartbeat_timeout=120.0,
        rank_heartbeat_timeout=90.0,
        rank_section_timeouts={"step": 60.0},
        rank_out_of_section_timeout=90.0,
    )
    fault = ("--fault", "sigkill", "--fault-step", "8", "--recovery", "none", "--save", "sync")
    found = train(
        tmp_path, tmp_path / "spool", *SIZE, *fault, launcher=launcher, version=version, killed=True
    )

    unwatched(found, 2)
    restarted(found)


def unwatched(found: Training, world_size: int) -> None:
    """Check that neither side of the rank monitors' connections met what it did not know."""
    assert "Task exception was never retrieved" not in found.output
    assert "Unknown section" not in found.output
    for rank in range(world_size):
        assert told(found, rank, Misuse) == []


def restarted(found: Training) -> None:
    """Check that the launcher restarted all ranks once, and what it had left."""
    layers = [one.layer for one in told(found, 1, AttemptStarted)]
    assert layers == ["launcher", "launcher"]
    assert told(found, 1, Resumed)[-1].completed == 5
    assert len(told(found, 0, RunEnded)) == 1
    assert budgets(found, "launcher") == [2, 1]
    assert final_report(found)["restart_budgets"]["launcher"] == {"remaining": 1, "limit": 2}
    configured = told(found, 0, RunConfigured)[-1]
    assert configured.timeouts["launcher.heartbeat_timeout"] == 90 * 10**9
    assert configured.timeouts["launcher.out_of_section_timeout"] == 90 * 10**9
