"""Who tells how a rank ended: its launcher's parent where there is one, else the agent.

The parent, which is often another process than the agent, holds a lock on a file in the rank's
spool until it has told; if it dies before, the kernel releases the lock and the agent tells.
"""

import contextlib
import fcntl
import os
from pathlib import Path

_FILE = "end"
_TOLD = b"told"


class Teller:
    """The one who tells how the rank of a spool ended."""

    def __init__(self, spool: Path) -> None:
        """Take it over from the agent; of a spool that is gone there is nothing to take."""
        self._descriptor: int | None = None
        try:
            descriptor = os.open(spool / _FILE, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
        else:
            self._descriptor = descriptor

    def close(self, *, told: bool) -> None:
        """Let go; where it was not told, the agent does."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        if told:
            with contextlib.suppress(OSError):  # a full disk: then the agent tells it, too
                os.write(descriptor, _TOLD)
        os.close(descriptor)


def told_by_another(spool: Path) -> bool:
    """Return whether somebody else tells, or has told, how the rank of a spool ended."""
    try:
        descriptor = os.open(spool / _FILE, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return os.read(descriptor, len(_TOLD)) == _TOLD
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
