"""Children of the demo: found by their address, ended with all they started."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.cli.processes import Process, free_port
from headway.cli.refusal import Refusal

WAITS = "import time; time.sleep(60)"


@pytest.fixture
def started() -> Iterator[list[Process]]:
    """Collect the children of a test and end what it forgot."""
    children: list[Process] = []
    yield children
    for child in children:
        child.stop()


def start(started: list[Process], folder: Path, program: str) -> Process:
    child = Process("service", [sys.executable, "-c", program], folder / "log", os.environ)
    started.append(child)
    return child


def test_a_service_is_found_where_it_says_it_listens(
    started: list[Process], tmp_path: Path
) -> None:
    says = "print('listening on http://127.0.0.1:4711', flush=True); "

    child = start(started, tmp_path, says + WAITS)

    assert child.address(30) == "http://127.0.0.1:4711"
    assert child.status() is None
    child.stop()
    assert child.status() is not None


def test_a_service_that_ends_at_once_is_refused_with_its_last_words(
    started: list[Process], tmp_path: Path
) -> None:
    child = start(started, tmp_path, "import sys; sys.exit('no such disk')")

    with pytest.raises(Refusal, match=r"(?s)the service ended with 1.*no such disk"):
        child.address(30)


def test_a_service_that_says_nothing_is_refused(started: list[Process], tmp_path: Path) -> None:
    child = start(started, tmp_path, WAITS)

    with pytest.raises(Refusal, match="the service did not start in 0 s"):
        child.address(0)


# A process of its own: end_descendants() would also end what other tests of this one started.
ENDS_AN_ORPHAN = """
import os, pathlib, subprocess, sys, time
from headway.cli.processes import adopt_orphans, end_descendants
note = pathlib.Path(sys.argv[1])
orphan = f"import os, pathlib, time; pathlib.Path({str(note)!r}).write_text(str(os.getpid())); "
parent = "import subprocess, sys; "
parent += f"subprocess.Popen([sys.executable, '-c', {orphan + 'time.sleep(60)'!r}], "
parent += "start_new_session=True)"
adopt_orphans()
subprocess.run([sys.executable, "-c", parent], check=True)
while not (note.exists() and note.read_text()):
    time.sleep(0.01)
os.kill(int(note.read_text()), 0)
end_descendants()
"""


def test_an_orphan_in_a_session_of_its_own_is_ended(tmp_path: Path) -> None:
    note = tmp_path / "note"

    subprocess.run([sys.executable, "-c", ENDS_AN_ORPHAN, note], check=True, timeout=60)

    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text(encoding="utf-8")), 0)


def test_a_busy_port_is_left_alone_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        assert free_port("collector", port) == 0

    assert f"port {port} is busy: the collector chooses another" in capsys.readouterr().err
