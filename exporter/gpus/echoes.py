"""One Xid, two witnesses: the kernel's log says it with its line, NVML says that it came.

The kernel's line wins, because it has the words. NVML's Xid waits for it, and is recorded only
where none came: no permission to read the log, no log in the container, lines lost.
"""

from collections import deque
from typing import Protocol

from headway.events import Event, GpuXid

PATIENCE = 10_000_000_000
"""For so many ns an Xid of NVML waits for its line in the kernel's log."""
SAME = 60_000_000_000
"""A line this many ns before NVML's Xid still is the same one."""
_MOST = 10_000


class Sink(Protocol):
    """Where events about the node go."""

    def node_event(self, event: Event, *, monotonic: int | None = None) -> None:
        """Record an event that is no run's own; `monotonic` ns, else now."""


class KernelXids:
    """Passes the kernel log's events on and remembers the Xids among them."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._seen: dict[tuple[str, int], int] = {}

    def node_event(self, event: Event, *, monotonic: int | None = None) -> None:
        """Record the event, as `Sink`."""
        if isinstance(event, GpuXid) and monotonic is not None:
            if len(self._seen) >= _MOST:
                self._seen.clear()
            self._seen[place(event.device), event.code] = monotonic
        self._sink.node_event(event, monotonic=monotonic)

    def told(self, pci_address: str, code: int, at: int) -> bool:
        """Return whether the kernel's log told of an Xid that NVML reported at a time."""
        seen = self._seen.get((place(pci_address), code))
        return seen is not None and seen > at - SAME


def place(pci_address: str) -> str:
    """Return a PCI address without its function, as the kernel's lines have it.

    Example: 0000:3B:00.0 is 0000:3b:00.
    """
    return pci_address.lower().partition(".")[0]


class WaitingXids:
    """Xids of NVML that wait for the kernel's log to tell of them."""

    def __init__(self, kernel: KernelXids | None) -> None:
        self._kernel = kernel
        self._waiting: deque[tuple[int, str, GpuXid]] = deque(maxlen=_MOST)

    def add(self, xid: GpuXid, pci_address: str, at: int) -> None:
        """Let an Xid wait."""
        self._waiting.append((at, pci_address, xid))

    def due(self, now: int, *, all_of_them: bool = False) -> list[tuple[int, GpuXid]]:
        """Return time and Xid of those for which no line came within `PATIENCE`."""
        found = []
        while self._waiting:
            at, pci_address, xid = self._waiting[0]
            if not all_of_them and now - at < PATIENCE:
                break
            self._waiting.popleft()
            if self._kernel is None or not self._kernel.told(pci_address, xid.code, at):
                found.append((at, xid))
        return found
