"""Who tells how a rank ended: its launcher's parent where there is one, else the agent.

`headway run` marks the processes of its command by a variable of the environment. A recorder leaves
the mark in its spool, and the agent leaves the end of a marked rank to the parent for as long as
that holds a lock, which the kernel releases if it dies.
"""

import contextlib
import fcntl
import os
import re
from pathlib import Path

MARK = "HEADWAY_LAUNCH"
"""Environment variable by which the processes of one command are known."""
_END = "end"
_TOLD = "told"
_MARKS = re.compile(r"[0-9a-f]{32}")


class Parent:
    """The parent of a launcher, which tells how its ranks ended."""

    def __init__(self, folder: Path, mark: str) -> None:
        """Take the ranks with this mark over from the agent of the folder of the spools.

        Raises:
            OSError: the folder cannot be written.
        """
        self._path = _lock(folder, mark)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        os.fchmod(self._descriptor, 0o644)  # whatever the umask says: the agent may be another user
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def told(self, spool: Path) -> None:
        """Say in a rank's spool that its end is told."""
        with contextlib.suppress(OSError):  # it is shipped and gone
            (spool / _END).write_text(_TOLD, encoding="ascii")

    def close(self) -> None:
        """Leave the ends that are yet to come to the agent."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def leave_to_parent(spool: Path, mark: str) -> None:
    """Mark a new spool as one of a launched rank."""
    if _MARKS.fullmatch(mark):
        with contextlib.suppress(OSError):  # a full disk: then the agent tells
            (spool / _END).write_text(mark, encoding="ascii")


def told_by_another(spool: Path) -> bool:
    """Return whether a launcher's parent tells, or has told, how the rank of a spool ended."""
    return _left(spool) == _TOLD or awaited(spool)


def awaited(spool: Path) -> bool:
    """Return whether a launcher's parent is still to tell how the rank of a spool ended.

    It finds its ranks by their spools, so that such a one has to stay.
    """
    left = _left(spool)
    if not _MARKS.fullmatch(left):
        return False
    try:
        descriptor = os.open(_lock(spool.parent, left), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _left(spool: Path) -> str:
    try:
        return (spool / _END).read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def _lock(folder: Path, mark: str) -> Path:
    return folder / f"launch.{mark}"
