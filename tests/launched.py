"""Commands under the real `headway run`, for tests of what passes through and what is recorded."""

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from agent_process import clean_environment
from headway.events import Envelope, Event
from headway.exporter.spooling.reader import START, SpoolReader, spools
from recording import environment

E = TypeVar("E", bound=Event)

NOBODY = "http://127.0.0.1:9"
"""An endpoint at which no collector can answer."""


def headway_run(
    spool: Path, command: Sequence[str], endpoint: str = NOBODY, kernel_log: str = "off"
) -> list[str]:
    """Return the words that run a command under the agent."""
    own = ["--spool", str(spool), "--endpoint", endpoint, "--port", "0", "--interval", "0.3"]
    own += ["--gpus", "no", "--nics", "no", "--kernel-log", kernel_log]
    return [sys.executable, "-m", "headway", "run", *own, "--", *command]


def surroundings(**variables: str) -> dict[str, str]:
    """Return an environment without settings of Headway in which the tests' imports are found."""
    return {**clean_environment(**variables), "PYTHONPATH": environment()["PYTHONPATH"]}


def launched(
    spool: Path,
    command: Sequence[str],
    endpoint: str = NOBODY,
    environment: Mapping[str, str] | None = None,
    **options: object,
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command to its end."""
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        headway_run(spool, command, endpoint),
        env=environment or surroundings(),
        capture_output=True,
        timeout=120,
        **options,
    )


def of(envelopes: Iterable[Envelope], kind: type[E]) -> list[E]:
    """Return the events of one kind."""
    return [item.event for item in envelopes if isinstance(item.event, kind)]


def spooled(folder: Path) -> list[Envelope]:
    """Return what waits in all spools of a folder, in order of time."""
    found = [
        envelope
        for path in spools(folder)
        for envelope in SpoolReader(path).read(START, 10**9).envelopes
    ]
    return sorted(found, key=lambda envelope: envelope.monotonic)
