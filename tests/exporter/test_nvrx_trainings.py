"""The hooks in somebody else's training, on each version of NVRx; and on one that lacks them."""

import hashlib
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headway.events import (
    Artifact,
    AttemptStarted,
    Event,
    Fault,
    Health,
    Misuse,
    RestartBudget,
    RestartPhase,
)
from nvrx_versions import INSTALLED, python_path, versions
from recording import events, of

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a training printed and recorded."""

    output: list[str]
    folder: Path

    def of(self, kind: type[Event]) -> list[Any]:
        """Return the events of one kind."""
        return of(self.folder / "spool", kind)


def run(folder: Path, *program: str, path: list[str]) -> Ran:
    """Run a program of one rank to its end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ended = subprocess.run(
        [sys.executable, *program],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*path, str(TESTS.parent / "src")]),
            "PYTHONWARNINGS": "ignore:The pynvml package is deprecated:FutureWarning",
            "HEADWAY_SPOOL": str(folder / "spool"),
            "HEADWAY_RUN_ID": "7",
            "RANK": "0",
            "LOCAL_RANK": "0",
            "WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "TORCH_FR_DUMP_TEMP_FILE": str(folder / "trace_"),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return Ran(output=ended.stdout.splitlines(), folder=folder)


@pytest.fixture(scope="module", params=versions(INSTALLED, "0.6.0", "0.7.0"))
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("own")
    return run(folder, str(TESTS / "own_training.py"), str(folder), path=python_path(request.param))


@pytest.mark.slow
def test_own_training_restarts_whatever_it_raises_and_however_it_is_annotated(own: Ran) -> None:
    assert own.output[0] == "done in iteration 2"
    # Without hiding LOCAL_RANK, 0.5 and later would have ended the rank at its first restart.
    assert own.output[1] == "2000000000 True"
    attempts = [(one.layer, one.iteration) for one in own.of(AttemptStarted)]
    assert attempts == [("scheduler", None), ("in_process", 1), ("in_process", 2)]
    assert own.of(Misuse) == []


@pytest.mark.slow
def test_its_exception_is_recorded_once_with_the_place_where_it_was_raised(own: Ran) -> None:
    (fault, _) = own.of(Fault)

    assert (fault.kind, fault.message) == ("exception", "1 of 2")
    assert fault.exception == "__main__.ExoticError"
    assert "in train" in fault.traceback
    assert "raise ExoticError(1, 2)" in fault.traceback


@pytest.mark.slow
def test_its_hang_is_blamed_on_it_and_its_stacks_are_kept(own: Ran) -> None:
    (_, fault) = own.of(Fault)
    assert (fault.kind, fault.suspect_rank) == ("hang", 0)
    assert fault.timeout == 2 * 10**9
    assert fault.ran_for > fault.timeout

    (stacks,) = [one for one in own.of(Artifact) if one.kind == "stacks"]
    written = Path(stacks.path).read_bytes()
    assert stacks.size == len(written)
    assert stacks.sha256 == hashlib.sha256(written).hexdigest()
    assert b"own_training.py" in written
    assert b"in wait" in written  # for the process, which is where it hangs


@pytest.mark.slow
def test_the_dump_of_the_flight_recorder_is_kept_as_a_reference(own: Ran) -> None:
    (dump,) = [one for one in own.of(Artifact) if one.kind == "flight_recorder"]

    assert dump.path == str(own.folder / "trace_0")
    assert dump.sha256 == hashlib.sha256(b"what NCCL was doing").hexdigest()


@pytest.mark.slow
def test_the_restarts_that_are_left_are_told_in_each_attempt(own: Ran) -> None:
    budgets = [(one.layer, one.remaining, one.limit) for one in own.of(RestartBudget)]

    assert budgets == [("in_process", 4, 4), ("in_process", 3, 4), ("in_process", 2, 4)]


@pytest.mark.slow
def test_each_restart_tells_its_phases_and_that_nothing_checks_health(own: Ran) -> None:
    told = [(one.phase, one.state) for one in own.of(RestartPhase)]

    phases = ("abort", "finalize", "health_check", "rendezvous")
    assert told == [(phase, state) for phase in phases for state in ("began", "ended")] * 2
    assert [one.state for one in own.of(Health)] == ["disabled"]


STUB = {
    "nvidia_resiliency_ext/__init__.py": "",
    "nvidia_resiliency_ext/inprocess/__init__.py": """
        class CallWrapper: pass
        class Wrapper:
            def __init__(self, *, initialize=None, abort=None, rank_assignment=None, finalize=None):
                self.hooks = initialize, finalize
        from . import abort, finalize, initialize
    """,
    "nvidia_resiliency_ext/inprocess/initialize.py": """
        class Initialize:
            def __call__(self, state): raise NotImplementedError
    """,
    "nvidia_resiliency_ext/inprocess/finalize.py": """
        class Finalize:
            def __call__(self, state): raise NotImplementedError
    """,
    "nvidia_resiliency_ext/inprocess/abort.py": """
        import abc
        class Abort(abc.ABC):
            @abc.abstractmethod
            def abort(self, state, reason): ...
    """,
}
"""An NVRx without most hooks, one of which wants to be called in another way."""

UNKNOWN = """
from types import SimpleNamespace
from nvidia_resiliency_ext import inprocess
from headway.exporter import Recorder
from headway.exporter.nvrx.hooks import Hooks

recorder = Recorder("own")
hooks = Hooks(recorder)
wrapper = inprocess.Wrapper(**hooks.options(initialize=None))
initialize, finalize = wrapper.hooks
state = SimpleNamespace(renamed=1)
for _ in range(2):
    assert initialize(state) is state
    assert finalize(state) is state
hooks.options()
with recorder.step(1):
    pass
print(hooks.watched(lambda: "trained")())
"""


def test_an_unknown_version_is_reported_once_and_the_rest_is_recorded(tmp_path: Path) -> None:
    for name, text in STUB.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(line[8:] for line in text.splitlines()), encoding="utf-8")

    found = run(tmp_path, "-c", UNKNOWN, path=[str(tmp_path)])

    assert found.output == ["trained"]
    missing, changed = found.of(Misuse)
    assert missing.kind == "nvrx_hooks"
    assert "no hook abort, health_check, rank_assignment, completion, terminate" in missing.detail
    assert changed.kind == "nvrx_interface"
    assert "mode" in changed.detail
    assert [one.state for one in found.of(RestartPhase)] == ["began", "ended"] * 2
    assert any(type(one).__name__ == "Steps" for one in events(tmp_path / "spool"))
