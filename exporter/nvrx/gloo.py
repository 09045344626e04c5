"""Breaking gloo's connections: a collective that waits for a dead peer ends in no other way."""

import os
import socket
import stat
from collections.abc import Iterator, Set
from contextlib import contextmanager


class GlooSockets:
    """The connections of gloo in this process, so that an abort can break them and no others."""

    def __init__(self, keep_ports: Set[int]) -> None:
        """Never touch connections to `keep_ports`, where the stores listen."""
        self._keep_ports = keep_ports
        self._before: Set[int] = frozenset()
        self._after: Set[int] | None = frozenset()

    @contextmanager
    def opened_here(self) -> Iterator[None]:
        """Take every connection opened in this block for gloo's; replaces what was known."""
        self._before, self._after = frozenset(_sockets()), None
        try:
            yield
        finally:
            self._after = frozenset(_sockets())

    def shut(self) -> int:
        """Break them, also from another thread; return how many there were."""
        after = self._after  # None: the block is still open
        broken = 0
        for inode, descriptor in _sockets().items():
            if inode in self._before or (after is not None and inode not in after):
                continue
            broken += self._shut(descriptor)
        return broken

    def _shut(self, descriptor: int) -> bool:
        try:
            with socket.socket(fileno=os.dup(descriptor)) as connection:
                if connection.family not in (socket.AF_INET, socket.AF_INET6):
                    return False
                ends = (connection.getsockname()[1], connection.getpeername()[1])
                if not self._keep_ports.isdisjoint(ends):
                    return False
                connection.shutdown(socket.SHUT_RDWR)
        except OSError:  # a listener, or closed meanwhile
            return False
        return True


def _sockets() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            status = os.fstat(int(name))
        except OSError:
            continue
        if stat.S_ISSOCK(status.st_mode):
            found[status.st_ino] = int(name)
    return found
