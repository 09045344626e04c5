"""Who listens on a port of this machine, so that the refusal of a port can name them.

Linux tells it of one's own programs, and root of all; elsewhere nobody is named.
"""

import contextlib
import errno
import os
from pathlib import Path

from headway.settings import SettingError

TAKEN = (errno.EADDRINUSE, errno.EACCES)
"""What the system says where the port is at fault, and not the address."""
_PROC = Path("/proc")
_LISTENS = "0A"


def refused_port(host: str, port: int, error: OSError) -> SettingError:
    """Return the refusal of a port that was asked for, with who has it and what to do."""
    who = None if error.errno != errno.EADDRINUSE else holder(port)
    if who is None:
        why = f"cannot be used ({error.strerror})"
        step = "choose another with --port"
    else:
        why = f"is held by {who}"
        step = "end it, or choose another with --port"
    return SettingError(f"port {port} of {host!r} {why}; {step}, 0 for a free one")


def holder(port: int) -> str | None:
    """Return the process that listens on a TCP port of this machine; None where nobody can tell."""
    wanted = {f"socket:[{inode}]" for inode in _inodes(port)}
    if not wanted:
        return None
    for process in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # another user's, or it ended meanwhile
            for handle in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if os.readlink(handle) in wanted:
                        name = (process / "comm").read_text(encoding="utf-8", errors="replace")
                        return f"process {process.name} ({name.strip()})"
    return None


def _inodes(port: int) -> set[str]:
    """Return the inodes of the sockets that listen on a port."""
    found = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (_PROC / "net" / table).read_text(encoding="ascii").splitlines()[1:]:
                _, local, _, state, *_, inode = line.split()[:10]
                if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                    found.add(inode)
    return found
