"""Child processes of a command: each watched through a log and always ended with all it started."""

import ctypes
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # its stubs are a package of their own

from headway.cli.refusal import Refusal

_LISTENING = re.compile(r"listening on (http://\S+)")
_POLL = 0.05
_GRACE = 10.0
_LAST_LINES = 30


class Process:
    """One child and everything it starts; output goes to a file."""

    def __init__(
        self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._child = subprocess.Popen(  # noqa: S603  # this program's own commands
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )

    def status(self) -> int | None:
        """Return the exit status, or None while it runs."""
        return self._child.poll()

    def address(self, timeout: float) -> str:
        """Return the address that the service says it listens on.

        Raises:
            Refusal: it ended, or said nothing in time.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            found = _LISTENING.search(self.log.read_text(encoding="utf-8", errors="replace"))
            if found is not None:
                return found.group(1)
            if self.status() is not None:
                raise Refusal(f"the {self.name} ended with {self.status()}", self.last_lines())
            time.sleep(_POLL)
        raise Refusal(f"the {self.name} did not start in {timeout:.0f} s", self.last_lines())

    def signal(self, number: int) -> None:
        """Send the child a signal, unless it has ended."""
        self._child.send_signal(number)

    def last_lines(self) -> str:
        """Return the end of the log, with where it lies."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"last lines of {self.log}:", *lines[-_LAST_LINES:]])

    def stop(self) -> None:
        """End the child: politely, so that it stores what it holds, then for certain."""
        if self.status() is None:
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(_GRACE)
            except subprocess.TimeoutExpired:
                self._child.kill()
        self._child.wait()


def adopt_orphans() -> None:
    """Become the parent of grandchildren whose own parent dies.

    NVRx leaves checkpoint workers and monitors behind when a rank dies; only so they are found.
    """
    set_child_subreaper = 36
    ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def end_descendants() -> None:
    """Kill every process that this one and its children started, and wait for them."""
    left = psutil.Process().children(recursive=True)
    for process in left:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(left, timeout=_GRACE)


def unused_port() -> int:
    """Return a loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_listening(port: int) -> bool:
    """Return whether somebody answers at a loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port(name: str, preferred: int) -> int:
    """Return the preferred loopback port, or 0 when another program has it, and say so."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", preferred))
        except OSError:
            print(f"port {preferred} is busy: the {name} chooses another", file=sys.stderr)
            return 0
    return preferred
