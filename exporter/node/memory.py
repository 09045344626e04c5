"""Watches how short of memory a node is, as its kernel tells it.

Saves copy whole states into host memory, so that a node may run out of it where training alone
would not. Memory changes all the time, so only what a reader could not guess is recorded.
"""

import time
from collections.abc import Callable
from pathlib import Path

from headway.events import NodeMemory
from headway.exporter.node.sink import NodeSink

_SECOND = 10**9
_SILENCE = 300 * _SECOND
"""Longest time in ns without a word."""
_SHARE = 0.02
"""Part of the node's memory by which what is available has to move to be worth a word."""
_PRESSURE = 0.05
"""The same for the share of time in which something waited for memory."""


class NodeMemoryWatcher:
    """Records a node's memory when it moves, when pressure moves, and when the kernel kills."""

    def __init__(
        self,
        sink: NodeSink,
        *,
        proc: Path = Path("/proc"),
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Watch through the files in `proc`; `monotonic` gives the events' clock in ns."""
        self._sink = sink
        self._proc = proc
        self._monotonic = monotonic
        self._told: tuple[int, NodeMemory] | None = None

    def poll(self) -> None:
        """Look once; three small files are read."""
        now = self._monotonic()
        seen = read(self._proc)
        if seen is not None and (self._told is None or self._is_news(now, seen, *self._told)):
            self._sink.node_event(seen, monotonic=now)
            self._told = now, seen

    def close(self) -> None:
        """Hold nothing."""

    def _is_news(self, now: int, seen: NodeMemory, since: int, told: NodeMemory) -> bool:
        moved = abs(seen.available - told.available) >= _SHARE * (seen.total or seen.available)
        pressed = abs((seen.pressure or 0.0) - (told.pressure or 0.0)) >= _PRESSURE
        return moved or pressed or seen.oom_kills != told.oom_kills or now - since >= _SILENCE


def read(proc: Path) -> NodeMemory | None:
    """Return a node's memory now; None where the kernel does not tell what is available.

    Pressure is the `some` line's `avg10` of pressure stall information, which a kernel may lack.
    """
    sizes = _fields(proc / "meminfo", ":")
    available = _kibibytes(sizes.get("MemAvailable"))
    if available is None:
        return None
    pressure = _fields(proc / "pressure" / "memory", None).get("some")
    kills = _fields(proc / "vmstat", None).get("oom_kill")
    return NodeMemory(
        available=available,
        total=_kibibytes(sizes.get("MemTotal")),
        pressure=None if pressure is None else _average(pressure),
        oom_kills=None if kills is None else int(kills),
    )


def _fields(path: Path, separator: str | None) -> dict[str, str]:
    """Return the rest of each line by its first word; nothing where the file is not there."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    parts = (line.split(separator, 1) for line in lines)
    return {part[0]: part[1].strip() for part in parts if len(part) == 2}


def _kibibytes(told: str | None) -> int | None:
    return None if told is None else int(told.split()[0]) * 1024


def _average(told: str) -> float | None:
    """Return the share of the last ten seconds in `avg10=1.25 avg60=...`."""
    for word in told.split():
        name, _, percent = word.partition("=")
        if name == "avg10":
            return min(float(percent) / 100, 1.0)
    return None
