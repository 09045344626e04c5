"""Watches what the agent itself takes of its node: time of a core and memory."""

import os
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from headway.events import AgentCost
from headway.exporter.node.sink import NodeSink

INTERVAL = 60_000_000_000
"""Time in ns between two samples; the first comes as long after the begin."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class OwnCostWatcher:
    """Records the cost of this process alone: under `headway run` its children are the training."""

    def __init__(
        self,
        sink: NodeSink,
        *,
        monotonic: Callable[[], int] = time.monotonic_ns,
        spent: Callable[[], float] = time.process_time,
        statm: Path = Path("/proc/self/statm"),
    ) -> None:
        """Begin now; `spent` gives seconds of a core, `statm` holds pages, the second resident."""
        self._sink = sink
        self._monotonic = monotonic
        self._spent = spent
        self._statm = statm
        self._since = monotonic(), spent()
        self._version = _version()

    def poll(self) -> None:
        """Record a sample once in an interval."""
        now = self._monotonic()
        before, spent_before = self._since
        if now - before < INTERVAL:
            return
        spent = self._spent()
        self._since = now, spent
        event = AgentCost(
            cpu=max(spent - spent_before, 0.0) * 1e9 / (now - before),
            memory=int(self._statm.read_text(encoding="ascii").split()[1]) * _PAGE,
            version=self._version,
        )
        self._sink.node_event(event, monotonic=now)

    def close(self) -> None:
        """Hold nothing."""


def _version() -> str | None:
    try:
        return version("headway")
    except PackageNotFoundError:
        return None
