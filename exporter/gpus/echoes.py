"""One Xid, two witnesses: the kernel's log says it with its line, NVML says that it came.

The kernel's line wins, because it has the words. NVML's Xid waits for it, and is recorded only
where none came: no permission to read the log, no log in the container, lines lost.
"""

from collections import deque

from headway.events import Event, GpuXid
from headway.exporter.node.sink import NodeSink
from headway.kernel_log.addresses import pci_address

PATIENCE = 10_000_000_000
"""For so many ns an Xid of NVML waits for its line: a burst of lines is told within 5 s."""
SAME = 600_000_000_000
"""A line this many ns before NVML's Xid still tells of it: a burst of lines, which is told at its
beginning, lasts up to 5 minutes, and that of a GPU that fell off the bus has gaps as long."""
_MOST = 10_000


class KernelXids:
    """Passes the kernel log's events on and remembers the Xids among them."""

    def __init__(self, sink: NodeSink) -> None:
        self._sink = sink
        self._seen: dict[tuple[str, int], int] = {}

    def node_event(self, event: Event, *, monotonic: int | None = None) -> None:
        """Record the event, as `NodeSink`."""
        if isinstance(event, GpuXid) and monotonic is not None:
            if len(self._seen) >= _MOST:
                self._seen.clear()
            self._seen[_place(event.device), event.code] = monotonic
        self._sink.node_event(event, monotonic=monotonic)

    def told(self, device: str, code: int, at: int) -> bool:
        """Return whether the kernel's log told of an Xid that NVML reported at a time."""
        seen = self._seen.get((_place(device), code))
        return seen is not None and seen > at - SAME


class WaitingXids:
    """Xids of NVML that wait for the kernel's log to tell of them."""

    def __init__(self, kernel: KernelXids | None) -> None:
        self._kernel = kernel
        self._waiting: deque[tuple[int, str, GpuXid]] = deque(maxlen=_MOST)

    def add(self, xid: GpuXid, address: str, at: int) -> None:
        """Let an Xid of the GPU at a PCI address wait; `at` is its time."""
        self._waiting.append((at, address, xid))

    def due(self, now: int, *, all_of_them: bool = False) -> list[tuple[int, GpuXid]]:
        """Return time and Xid of those for which no line came within `PATIENCE`."""
        found = []
        while self._waiting:
            at, address, xid = self._waiting[0]
            if not all_of_them and now - at < PATIENCE:
                break
            self._waiting.popleft()
            if self._kernel is None or not self._kernel.told(address, xid.code, at):
                found.append((at, xid))
        return found


def _place(device: str) -> str:
    return pci_address(device) or device
