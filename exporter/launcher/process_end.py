"""How a process ended that is no child of this one."""

import fcntl
import os
import struct
from pathlib import Path

_GET_INFO = 0xC040FF0B
"""PIDFD_GET_INFO of include/uapi/linux/pidfd.h, for the first version of its structure."""
_INFO = struct.Struct("=QQ11Ii")
"""Mask, control group, eleven ids, exit status."""
_EXIT = 1 << 3
"""PIDFD_INFO_EXIT: the exit status is asked for, or known."""


def exit_code(process_id: int, descriptor: int, proc: Path = Path("/proc")) -> int | None:
    """Return how an ended process ended, negative for a signal; `None` where nobody can know.

    `descriptor` is a pidfd, which from Linux 6.15 on still knows once the parent has asked; until
    then the kernel shows it to every process of the same user.
    """
    status = _kept(descriptor)
    if status is None:
        status = _shown(process_id, proc)
    if status is None:  # its parent may have asked between the two
        status = _kept(descriptor)
    return None if status is None else os.waitstatus_to_exitcode(status)


def _kept(descriptor: int) -> int | None:
    answer = bytearray(_INFO.size)
    struct.pack_into("=Q", answer, 0, _EXIT)
    try:
        fcntl.ioctl(descriptor, _GET_INFO, answer)
    except OSError:
        return None
    mask, *_, status = _INFO.unpack(answer)
    return status if mask & _EXIT else None


def _shown(process_id: int, proc: Path) -> int | None:
    try:
        stat = (proc / str(process_id) / "stat").read_bytes()
        # The command's name may hold spaces and brackets; the fields count from its last bracket.
        fields = stat.rpartition(b")")[2].split()
        return int(fields[49]) if fields[0] == b"Z" else None
    except (OSError, ValueError, IndexError):
        return None
