"""Who ships a folder of spools: one agent at a time, which says so beside them.

Standard library only: `headway run` claims the folder before it starts its command.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from headway.exporter.spooling.layout import AGENT_MARKER
from headway.exporter.spooling.positions import write_atomically
from headway.settings import SettingError

_LOCK = "agent.lock"


class OtherAgentError(SettingError):
    """Another agent ships the folder already."""


@contextlib.contextmanager
def only_agent(folder: Path) -> Iterator[None]:
    """Be the only agent of a folder for the length of a block.

    Raises:
        OtherAgentError: another one is.
        SettingError: the folder cannot be used.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise SettingError(
            f"cannot use the spool folder {str(folder)!r}: {error.strerror}; "
            "name another with --spool or HEADWAY_SPOOL"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise OtherAgentError(
            f"another agent ships the spools in {str(folder)!r}; stop it, or name another folder "
            "with --spool or HEADWAY_SPOOL"
        ) from error
    try:
        yield
    finally:
        os.close(descriptor)


def renew_marker(folder: Path) -> None:
    """Say beside the spools that an agent is at work; a full disk is left for the records."""
    marker = {"pid": os.getpid(), "time": time.time_ns()}
    with contextlib.suppress(OSError):
        write_atomically(folder / AGENT_MARKER, marker)


def remove_marker(folder: Path) -> None:
    """Say that no agent is at work any more."""
    with contextlib.suppress(OSError):
        (folder / AGENT_MARKER).unlink(missing_ok=True)
