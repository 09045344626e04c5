"""Real torchrun and ft_launcher under `headway run`: ends and restarts on the right rank."""

import os
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from headway.events import (
    AttemptStarted,
    Envelope,
    Fault,
    Note,
    RankExited,
    RestartBudget,
    RestartPhase,
)
from launched import launched, of, spooled, surroundings
from nvrx_versions import python_path, versions

pytestmark = pytest.mark.slow

TRAINING = """
import os, signal, sys, time
from headway.exporter import Recorder

recorder = Recorder(run="llama")
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
recorder.resumed(completed=0)
for number in range(1, 6):
    with recorder.step(number):
        time.sleep(0.05)
    if number == 3 and attempt == 0 and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 3 and attempt == 1:
        if rank == 0:
            sys.exit(5)
        time.sleep(60)
"""
HEARTBEATS = """
import os, signal, sys, time
from nvidia_resiliency_ext import fault_tolerance
from headway.exporter import Recorder

recorder = Recorder(run="llama")
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
hangs = int(sys.argv[1])
client = fault_tolerance.RankMonitorClient()
client.init_workload_monitoring()
recorder.resumed(completed=0)
for number in range(1, 6):
    client.send_heartbeat()
    with recorder.step(number):
        time.sleep(0.05)
    if number == 3 and rank == 1 and attempt == hangs - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 3 and rank == 1 and attempt == hangs:
        time.sleep(60)
client.shutdown_workload_monitoring()
"""
LIMITS = """
fault_tolerance:
  workload_check_interval: 0.5
  initial_rank_heartbeat_timeout: 60.0
  rank_heartbeat_timeout: 4.0
  rank_termination_signal: SIGKILL
"""


class Exit(NamedTuple):
    """How one rank ended."""

    code: int | None
    signal: int | None
    by: str


def beside_python(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def attempts(found: list[Envelope]) -> list[str]:
    """Return the attempts in their order."""
    started = [item.attempt for item in found if isinstance(item.event, AttemptStarted)]
    return [name for name in dict.fromkeys(started) if name is not None]


def exits(found: list[Envelope]) -> dict[tuple[int, int], Exit]:
    """Return how each rank ended, by number of the attempt and rank; each must end once."""
    order = attempts(found)
    told = {}
    for item in found:
        if isinstance(item.event, RankExited):
            assert item.attempt is not None
            assert item.rank is not None
            key = (order.index(item.attempt), item.rank)
            assert key not in told
            told[key] = Exit(item.event.exit_code, item.event.signal, item.event.by)
    return told


def phases(found: list[Envelope]) -> list[tuple[str, str]]:
    return [(event.phase, event.state) for event in of(found, RestartPhase)]


RESTART = [
    (phase, state)
    for phase in ("stop_workers", "rendezvous", "spawn")
    for state in ("began", "ended")
]


def test_torchrun_restarts_after_a_kill_and_an_exit(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(TRAINING)
    words = [beside_python("torchrun"), "--standalone", "--nproc-per-node", "2"]

    ended = launched(tmp_path / "spool", [*words, "--max-restarts", "3", str(program)])

    assert ended.returncode == 0, ended.stderr
    assert b"failed (exitcode: -9) local_rank: 1" in ended.stderr
    found = spooled(tmp_path / "spool")
    told = exits(found)
    assert told[0, 1] == Exit(None, 9, "unknown"), "nothing says who killed it"
    assert told[0, 0].by == "launcher"
    assert told[1, 0] == Exit(5, None, "itself")
    assert told[1, 1].by == "launcher"
    assert told[2, 0] == told[2, 1] == Exit(0, None, "itself")
    assert len(told) == 6
    assert [(b.remaining, b.limit) for b in of(found, RestartBudget)] == [(3, 3), (2, 3), (1, 3)]
    assert phases(found) == RESTART * 2
    assert of(found, Fault) == []


def test_torchrun_gives_up_with_its_own_words_and_status(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(TRAINING)
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone"]

    ended = launched(tmp_path / "spool", [*words, "--nproc-per-node", "2", str(program)])

    assert ended.returncode == 1
    assert b"Root Cause (first observed failure):" in ended.stderr
    assert b"exitcode  : -9" in ended.stderr
    told = exits(spooled(tmp_path / "spool"))
    assert told[0, 1] == Exit(None, 9, "unknown")
    assert told[0, 0].by == "launcher"


def test_a_launcher_that_is_not_entered_is_read_by_its_lines(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(TRAINING)
    launcher = [beside_python("torchrun"), "--standalone", "--nproc-per-node", "2"]
    command = shlex.join([*launcher, "--max-restarts", "3", str(program)])

    ended = launched(
        tmp_path / "spool",
        ["sh", "-c", f"LOGLEVEL=INFO {command}"],
    )

    assert ended.returncode == 0, ended.stderr
    found = spooled(tmp_path / "spool")
    told = exits(found)
    assert told[0, 1] == Exit(None, 9, "unknown")
    assert told[1, 0] == Exit(5, None, "itself")
    assert told[1, 1].by == "launcher"
    assert [(b.remaining, b.limit) for b in of(found, RestartBudget)] == [(2, 3), (1, 3)]
    said = phases(found)
    for phase in ("stop_workers", "rendezvous", "spawn"):
        assert said.count((phase, "began")) == 2


def heartbeats(folder: Path, hangs_at: int) -> list[str]:
    """Return the options of a launcher whose rank 1 hangs in an attempt, and is killed before."""
    program, limits = folder / "train.py", folder / "ft.yaml"
    program.write_text(HEARTBEATS)
    limits.write_text(LIMITS)
    words = ["--nnodes", "1", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    words += ["--rdzv-endpoint", "127.0.0.1:0", "--rdzv-id", "JOB", "--max-restarts", "3"]
    words += ["--monitor-interval", "0.2", "--workers-stop-timeout", "5"]
    return [*words, "--ft-cfg-path", str(limits), str(program), str(hangs_at)]


def test_ft_launcher_restarts_after_a_kill_and_a_hang(tmp_path: Path) -> None:
    launcher = [beside_python("ft_launcher"), "--ft-enable-nic-monitor", "False"]

    ended = launched(tmp_path / "spool", [*launcher, *heartbeats(tmp_path, hangs_at=1)])

    assert ended.returncode == 0, ended.stderr
    found = spooled(tmp_path / "spool")
    told = exits(found)
    assert told[0, 1] == Exit(None, 9, "unknown")
    assert told[1, 1] == Exit(None, 9, "launcher"), "its watchdog had fired"
    assert told[2, 0] == told[2, 1] == Exit(0, None, "itself")
    (fault,) = [item for item in found if isinstance(item.event, Fault)]
    assert isinstance(fault.event, Fault)
    assert (fault.event.kind, fault.rank) == ("heartbeat_timeout", 1)
    assert fault.event.ran_for == fault.event.timeout == 4 * 10**9
    assert attempts(found).index(fault.attempt or "") == 1
    assert [(b.remaining, b.limit) for b in of(found, RestartBudget)] == [(3, 3), (2, 3), (1, 3)]
    assert phases(found) == RESTART * 2


@pytest.mark.parametrize("version", versions("0.6.0", "0.7.0"))
def test_later_versions_profile_their_restarts_and_describe_their_cycles(
    tmp_path: Path, version: str
) -> None:
    launcher = [sys.executable, "-m", "nvidia_resiliency_ext.fault_tolerance.launcher"]
    launcher += ["--ft-cycle-info-dir", str(tmp_path / "cycles")]
    environment = surroundings()
    path = os.pathsep.join([*python_path(version), environment["PYTHONPATH"]])

    ended = launched(
        tmp_path / "spool",
        [*launcher, *heartbeats(tmp_path, hangs_at=0)],
        environment={**environment, "PYTHONPATH": path},
    )

    assert ended.returncode == 0, ended.stderr
    found = spooled(tmp_path / "spool")
    told = exits(found)
    assert told[0, 1] == Exit(None, 9, "launcher")
    assert told[1, 0] == told[1, 1] == Exit(0, None, "itself")
    (fault,) = [item for item in found if isinstance(item.event, Fault)]
    assert isinstance(fault.event, Fault)
    assert (fault.event.kind, fault.rank) == ("heartbeat_timeout", 1)
    assert [(b.remaining, b.limit) for b in of(found, RestartBudget)] == [(3, 3), (2, 3)]
    assert [said for said in phases(found) if said[0] != "health_check"] == RESTART
    notes = {event.text for event in of(found, Note)}
    assert {f"NVRx cycle {cycle} ended" for cycle in (0, 1)} <= notes
