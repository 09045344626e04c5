"""How a process ended that another process is the parent of."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headway.exporter.launcher import process_end


@contextmanager
def killed() -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Yield a process that was killed, and that nobody has asked about, with a pidfd of it."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    descriptor = os.pidfd_open(process.pid)
    with process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        yield process, descriptor
    os.close(descriptor)


def test_the_end_is_known_before_the_parent_asks() -> None:
    with killed() as (process, descriptor):
        assert process_end.exit_code(process.pid, descriptor) == -signal.SIGKILL


def test_the_end_is_known_though_the_parent_asks_between_two_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with killed() as (process, descriptor):

        def gone(process_id: int, proc: Path) -> None:
            process.wait()

        monkeypatch.setattr(process_end, "_shown", gone)
        code = process_end.exit_code(process.pid, descriptor)
        if process_end.exit_code(process.pid, descriptor) is None:
            pytest.skip("before Linux 6.15 only the parent knows how a process ended")
        assert code == -signal.SIGKILL


def test_the_end_of_a_process_that_lives_is_not_known() -> None:
    own = os.pidfd_open(os.getpid())
    assert process_end.exit_code(os.getpid(), own) is None
    os.close(own)
