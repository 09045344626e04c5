"""The agent beside a command: what is shipped, and that nothing of it can keep the command back."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_process import agent_process
from arrivals import wait_until
from headway.events import Fault, RankExited, Steps, StopAnnounced
from headway.exporter.agent.lock import only_agent
from headway.exporter.launcher import shipping_thread
from headway.exporter.launcher.shipping_thread import ShippingThread
from headway.exporter.spooling.reader import spools
from headway.settings import AgentSettings
from launched import NOBODY, headway_run, launched, of, spooled, surroundings
from otlp_endpoint import OtlpEndpoint, otlp_endpoint

PATIENCE = 60.0
TRAINING = """
import os, sys, time
from headway.exporter import Recorder

recorder = Recorder(run="llama")
recorder.resumed(completed=0)
for number in range(1, 11):
    with recorder.step(number):
        pass
"""
PARENT = """
import os, subprocess, sys, time
process = subprocess.Popen(sys.argv[1:])
os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
THEN
process.wait()
"""
"""A launcher that asks late how its rank ended: before Linux 6.15 nobody else knows after that."""
ENDS = {
    "returns": "",
    "exits": "sys.exit(7)",
    "raises": "raise ValueError('boom')",
    "is killed": "os.kill(os.getpid(), 9)",
    "crashes": "os.kill(os.getpid(), 11)",
    "leaves at once": "os._exit(3)",
}


@pytest.fixture
def endpoint() -> Iterator[OtlpEndpoint]:
    with otlp_endpoint() as served:
        yield served


def parent(then: str, *command: str) -> list[str]:
    """Return a launcher of one rank that does something before it asks how the rank ended."""
    return [sys.executable, "-c", PARENT.replace("THEN", then), *command]


def training(end: str = "returns") -> list[str]:
    return [sys.executable, "-c", TRAINING + ENDS[end]]


@pytest.mark.slow
def test_what_a_command_recorded_is_shipped_before_the_exit(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    # The agent is there from the first second on; a command of less leaves its spools behind.
    ended = launched(tmp_path, parent("time.sleep(3)", *training()), endpoint.address)
    assert ended.returncode == 0
    assert ended.stderr == b"", "the recorder sees that it is shipped, and the agent is silent"
    assert sum(len(item.packed) > 0 for item in of(endpoint.accepted, Steps)) >= 1
    (exited,) = of(endpoint.arrived, RankExited)
    assert (exited.exit_code, exited.by) == (0, "itself")
    assert spools(tmp_path) == []
    assert not (tmp_path / "agent.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "status", "exit_code", "number", "by"),
    [
        ("exits", 7, 7, None, "itself"),
        ("raises", 1, 1, None, "itself"),
        ("is killed", 137, None, 9, "unknown"),
        ("crashes", 139, None, 11, "itself"),
        ("leaves at once", 3, 3, None, "itself"),
    ],
)
def test_how_a_rank_ended_is_told_once_with_its_attempt(
    tmp_path: Path, end: str, status: int, exit_code: int | None, number: int | None, by: str
) -> None:
    ended = launched(tmp_path, training(end))
    assert ended.returncode == status
    found = spooled(tmp_path)
    (exited,) = [item for item in found if isinstance(item.event, RankExited)]
    event = exited.event
    assert isinstance(event, RankExited)
    assert (event.exit_code, event.signal, event.by) == (exit_code, number, by)
    (attempt,) = {item.attempt for item in found if isinstance(item.event, Steps)}
    assert (exited.rank, exited.attempt) == (0, attempt)


# A30: open-telemetry/opentelemetry-python#3309
@pytest.mark.slow
def test_an_unreachable_collector_delays_the_exit_by_two_seconds_at_most(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, answers nobody
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        stamp = tmp_path / "ended"
        program = f"{TRAINING}\ntime.sleep(3)\nos.mkdir({str(stamp)!r})"
        ended = launched(tmp_path / "spool", [sys.executable, "-c", program], endpoint)
        delay = time.time() - stamp.stat().st_mtime
    assert ended.returncode == 0
    assert delay < 2.0 + 1.0  # with the end of two interpreters on a machine that is busy
    assert of(spooled(tmp_path / "spool"), Steps), "the spool stays for the next agent"
    assert not (tmp_path / "spool" / "agent.json").exists()


@pytest.mark.slow
def test_the_next_agent_ships_what_stayed(endpoint: OtlpEndpoint, tmp_path: Path) -> None:
    launched(tmp_path, training("is killed"))
    assert of(spooled(tmp_path), RankExited)
    launched(tmp_path, ["sleep", "3"], endpoint.address)
    assert len(of(endpoint.arrived, RankExited)) == 1
    assert of(endpoint.accepted, Steps)
    assert spools(tmp_path) == []


@pytest.mark.slow
def test_where_an_agent_is_at_work_shipping_is_left_to_it(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    with agent_process(tmp_path, endpoint.address) as agent:
        words = ["sh", "-c", '"$@"; sleep 1', "sh", *training("is killed")]
        ended = launched(tmp_path, words)
        assert ended.returncode == 0
        assert b"no agent" not in ended.stderr
        assert (tmp_path / "agent.json").exists()
        status, errors = agent.stop()
    assert status == 0, errors
    assert len(of(endpoint.arrived, RankExited)) == 1
    assert spools(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("end", ["is killed", "leaves at once"])
def test_a_rank_that_ends_at_once_is_told_though_an_agent_ships_its_spool_faster(
    endpoint: OtlpEndpoint, tmp_path: Path, end: str
) -> None:
    with agent_process(tmp_path, endpoint.address) as agent:
        for _ in range(3):
            launched(tmp_path, training(end))
        status, errors = agent.stop()
    assert status == 0, errors
    assert len(of(endpoint.arrived, RankExited)) == 3
    assert spools(tmp_path) == []


@pytest.mark.slow
def test_what_an_agent_that_left_has_not_shipped_is_shipped_at_the_end(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    words = headway_run(tmp_path, parent("input()", *training()), endpoint.address)
    with only_agent(tmp_path):
        process = subprocess.Popen(
            words, env=surroundings(), stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        wait_until(lambda: bool(of(spooled(tmp_path), RankExited)))
    assert not (tmp_path / "agent.json").exists()
    process.communicate(b"go\n", timeout=PATIENCE)
    assert process.returncode == 0
    assert of(endpoint.accepted, Steps)
    assert spools(tmp_path) == []


def pause(seconds: float) -> bool:
    time.sleep(seconds)
    return False


@pytest.mark.slow
def test_shipping_is_taken_over_where_the_agent_at_work_leaves(
    endpoint: OtlpEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping_thread, "ABSENCE", 1.0)
    settings = AgentSettings(
        spool=tmp_path, endpoint=endpoint.address, port=0, gpus=False, nics=False, kernel_log="off"
    )
    shipping = ShippingThread(settings, tmp_path)
    with only_agent(tmp_path):
        shipping.claim()
        shipping.start()
        subprocess.run(training(), env=surroundings(HEADWAY_SPOOL=str(tmp_path)), check=True)
        assert not (tmp_path / "agent.json").exists(), "it is not the agent yet"
    wait_until(lambda: bool(of(endpoint.accepted, Steps)))
    assert (tmp_path / "agent.json").exists()
    assert shipping.finish(time.monotonic() + PATIENCE, pause)
    assert not (tmp_path / "agent.json").exists()


def test_a_folder_that_cannot_be_used_keeps_nobody_back(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    ended = launched(blocked, ["sh", "-c", "echo trained; exit 3"])
    assert (ended.returncode, ended.stdout) == (3, b"trained\n")
    assert ended.stderr.startswith(b"headway run: cannot use the spool folder")
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        {"HEADWAY_AGENT_INTERVAL": "0"},
        {"HEADWAY_AGENT_INTERVAL": "often"},
        {"HEADWAY_CONFIG": "/no/such/file"},
    ],
)
def test_a_setting_that_cannot_be_used_keeps_nobody_back(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    words = [sys.executable, "-m", "headway", "run", "--spool", str(tmp_path), "--", "sh", "-c"]
    ended = subprocess.run(
        [*words, "echo trained; exit 3"],
        env=surroundings(**variables),
        capture_output=True,
        timeout=PATIENCE,
    )
    assert (ended.returncode, ended.stdout) == (3, b"trained\n")


def test_no_command_is_wrong_use(tmp_path: Path) -> None:
    ended = launched(tmp_path, [])
    assert ended.returncode == 2
    assert b"name it after `--`" in ended.stderr


def test_the_options_of_the_command_are_its_own(tmp_path: Path) -> None:
    assert launched(tmp_path, ["echo", "--help", "--", "-x"]).stdout == b"--help -- -x\n"


@pytest.mark.slow
def test_a_stop_from_outside_is_told_and_ends_the_rank(tmp_path: Path) -> None:
    program = TRAINING + "print('ready', flush=True)\ntime.sleep(60)"
    words = headway_run(tmp_path, [sys.executable, "-c", program])
    with subprocess.Popen(words, env=surroundings(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM
    found = spooled(tmp_path)
    assert [event.reason for event in of(found, StopAnnounced)] == ["sigterm"]
    assert [(event.signal, event.by) for event in of(found, RankExited)] == [(15, "person")]


@pytest.mark.slow
def test_under_a_scheduler_it_was_the_scheduler(tmp_path: Path) -> None:
    program = TRAINING + "print('ready', flush=True)\ntime.sleep(60)"
    words = headway_run(tmp_path, [sys.executable, "-c", program])
    variables = surroundings(SLURM_JOB_ID="4711")
    with subprocess.Popen(words, env=variables, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        process.wait(PATIENCE)
    assert [event.by for event in of(spooled(tmp_path), RankExited)] == ["scheduler"]


@pytest.mark.slow
def test_a_rank_of_another_command_is_left_alone(tmp_path: Path) -> None:
    program = TRAINING + "print('ready', flush=True)\nsys.stdin.read()\n" + ENDS["exits"]
    other = subprocess.Popen(
        [sys.executable, "-c", program],
        env=surroundings(HEADWAY_SPOOL=str(tmp_path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with other:
        assert other.stdout is not None
        other.stdout.readline()
        launched(tmp_path, training("leaves at once"))
        other.communicate()
    assert [event.exit_code for event in of(spooled(tmp_path), RankExited)] == [3]


@pytest.mark.slow
def test_a_kill_of_headway_leaves_the_command_to_itself(tmp_path: Path) -> None:
    done = tmp_path / "done"
    words = headway_run(
        tmp_path / "spool", ["sh", "-c", f"echo $$; read word; mkdir {done}"], NOBODY
    )
    reading, writing = os.pipe()
    with subprocess.Popen(
        words, env=surroundings(), stdin=reading, stdout=subprocess.PIPE
    ) as process:
        os.close(reading)
        assert process.stdout is not None
        assert process.stdout.readline()
        process.kill()
    os.write(writing, b"go\n")
    os.close(writing)
    deadline = time.monotonic() + PATIENCE
    while not done.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


LEFT = """
import json
path = os.environ["TORCHELASTIC_ERROR_FILE"]
os.makedirs(os.path.dirname(path), exist_ok=True)
extra = {"py_callstack": "Traceback of it", "timestamp": "1"}
with open(path, "w") as file:
    json.dump({"message": {"message": "ValueError: boom", "extraInfo": extra}}, file)
time.sleep(0.5)
os._exit(1)
"""


@pytest.mark.slow
def test_an_error_file_tells_what_a_rank_could_not(tmp_path: Path) -> None:
    error_file = tmp_path / "none_x" / "attempt_0" / "0" / "error.json"
    words = ["env", f"TORCHELASTIC_ERROR_FILE={error_file}", sys.executable, "-c", TRAINING + LEFT]
    launched(tmp_path / "spool", words)
    found = spooled(tmp_path / "spool")
    (fault,) = [item for item in found if isinstance(item.event, Fault)]
    assert fault.event == Fault(
        kind="exception",
        message="ValueError: boom",
        exception="ValueError",
        traceback="Traceback of it",
    )
    (exited,) = [item for item in found if isinstance(item.event, RankExited)]
    assert (fault.rank, fault.attempt) == (exited.rank, exited.attempt)
    assert fault.monotonic < exited.monotonic


@pytest.mark.slow
def test_the_error_files_of_the_attempt_before_are_found_beside_its_own(tmp_path: Path) -> None:
    attempts = tmp_path / "none_x"
    left = attempts / "attempt_0" / "3" / "error.json"
    left.parent.mkdir(parents=True)
    left.write_text('{"message": {"message": "KeyError: 1", "extraInfo": {}}}')
    own = attempts / "attempt_1" / "0" / "error.json"
    program = TRAINING + "time.sleep(0.5)"
    words = ["env", f"TORCHELASTIC_ERROR_FILE={own}", sys.executable, "-c", program]
    launched(tmp_path / "spool", words)
    (fault,) = of(spooled(tmp_path / "spool"), Fault)
    assert fault.exception == "KeyError"
