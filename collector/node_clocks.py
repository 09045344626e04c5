"""The clocks of nodes as stored events tell of them: how far off, and when last heard of."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from headway.blocks import Block, Part
from headway.events import Clock, Envelope

KEPT = 86_400 * 10**9
"""A node of which nothing is newer than this, in ns, is not shown any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClock:
    """Collector's clock minus the clock that stamps a node's events, and its error; in ns."""

    node: str
    offset: int
    error: int | None


@dataclass(slots=True)
class _Boot:
    """One boot of a node: its newest event by its wall clock, and its newest measurement.

    Measurements are told apart by the monotonic clock: the wall clock may have been set back.
    """

    newest: int
    measured: int | None = None
    offset: int = 0
    error: int | None = None

    @property
    def heard(self) -> int:
        """Time of the newest event by the collector's clock."""
        return self.newest + self.offset


class NodeClocks:
    """The offset of every node's boot; takes events in any order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boots: dict[tuple[str | None, str | None], _Boot] = {}

    def add(self, parts: Iterable[Part]) -> None:
        """Take stored events."""
        with self._lock:
            for part in parts:
                if not isinstance(part, Block):
                    self._add(part)
                elif part.kind is Clock:
                    for envelope in part.envelopes():
                        self._add(envelope)
                else:
                    shared = part.producer
                    self._heard(shared["node"], shared["boot_id"], part.latest)

    def _heard(self, node: str | None, boot_id: str | None, time: int) -> _Boot:
        boot = self._boots.get((node, boot_id))
        if boot is None:
            boot = self._boots[node, boot_id] = _Boot(newest=time)
        elif time > boot.newest:
            boot.newest = time
        return boot

    def _add(self, envelope: Envelope) -> None:
        time = envelope.anchor + envelope.monotonic
        boot = self._heard(envelope.node, envelope.boot_id, time)
        event = envelope.event
        if not isinstance(event, Clock):
            return
        measured = envelope.monotonic
        if boot.measured is None or (measured, event.offset) > (boot.measured, boot.offset):
            boot.measured, boot.offset, boot.error = measured, event.offset, event.error

    def offset(self, node: str | None, boot_id: str | None) -> int:
        """Return what to add to the times of a node's boot, in ns; 0 where nobody measured it."""
        with self._lock:
            boot = self._boots.get((node, boot_id))
            return 0 if boot is None else boot.offset

    def newest(self) -> int:
        """Return the time of the newest event by the collector's clock; 0 without any."""
        with self._lock:
            return max((boot.heard for boot in self._boots.values()), default=0)

    def heard(self, now: int) -> dict[str, int]:
        """Return when each node was last heard of, UTC ns, as far as that is within a day."""
        found: dict[str, int] = {}
        with self._lock:
            for (node, _), boot in self._boots.items():
                if node is not None and now - boot.heard < KEPT:
                    found[node] = max(boot.heard, found.get(node, 0))
        return found

    def current(self, now: int) -> list[NodeClock]:
        """Return the offset of each node heard of lately in its newest boot; `now` is UTC ns.

        A boot whose agent told no offset is not off, and not shown.
        """
        newest: dict[str, _Boot] = {}
        with self._lock:
            for (node, _), boot in self._boots.items():
                if node is not None and now - boot.heard < KEPT:
                    known = newest.setdefault(node, boot)
                    newest[node] = max(known, boot, key=lambda boot: boot.heard)
            return [
                NodeClock(node=node, offset=boot.offset, error=boot.error)
                for node, boot in sorted(newest.items(), key=lambda item: item[0])
                if boot.measured is not None
            ]
