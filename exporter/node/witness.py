"""What the agent itself has to say about ranks, written to spools as durable as theirs.

The agent is one producer per run, and one for the node itself: its events wait in spools of its own
beside the others, are shipped like them, and are adopted by the next agent if this one dies. It
keeps to the ranks' anchor, so that a wall clock that was set in between does not part its times
from theirs.
"""

import logging
import os
import time
import uuid
from collections.abc import Collection
from pathlib import Path

from headway.events import Clock, Dropped, Event, Heartbeat, RankExited
from headway.exporter import oom
from headway.exporter.identity import clock_anchor, node
from headway.exporter.spooling.layout import Producer
from headway.exporter.spooling.reader import Status
from headway.exporter.spooling.tailing import Gap
from headway.exporter.spooling.writer import SpoolWriter

_log = logging.getLogger(__name__)

_LIMIT = 32 * 1024**2
"""Bytes of one run's witness spool: days of heartbeats without a collector."""
_SAME_ANCHOR = 100_000_000
"""Anchors of one node that differ by less, in ns, mean a clock that nobody set in between."""
_EPOCH = 0
"""Anchor of a producer whose clock is the wall clock."""


class Witness:
    """Writes the agent's own events; `boot_id` is this node's."""

    def __init__(self, folder: Path, process_id: int, boot_id: str | None) -> None:
        self._folder = folder
        self._process_id = process_id
        self._boot_id = boot_id
        self._writers: dict[tuple[str | None, str | None], dict[int, SpoolWriter]] = {}
        """The spools of each run and node, by their anchor; those of the node have no run."""
        self._node: Producer | None = None

    def alive(self, rank: Producer, status: Status) -> None:
        """Record that a silent rank is alive, and what it is doing."""
        phases = tuple(opened.phase for opened in status.open_phases)
        event = Heartbeat(open_phases=phases, last_step=status.last_step)
        self._record(event, rank, rank.rank, status.attempt, time.monotonic_ns())

    def exited(self, rank: Producer, status: Status, seen_alive: bool) -> None:
        """Record that a rank is gone without having said so.

        One that was dead before this agent came left its last activity as the only time known.
        """
        if seen_alive:
            monotonic = time.monotonic_ns()
        elif rank.boot_id == self._boot_id and status.last_activity:
            monotonic = status.last_activity
        else:
            return  # of an earlier boot, whose clock is not ours; its last record has to do
        event = RankExited(by="unknown", process_id=rank.process_id)
        self._record(event, rank, rank.rank, status.attempt, monotonic)

    def out_of_memory(self, rank: Producer, status: Status, monotonic: int) -> None:
        """Record that the kernel killed a rank for lack of memory at `monotonic` ns."""
        self._record(oom.FAULT, rank, rank.rank, status.attempt, monotonic)

    def tell(
        self, event: Event, source: Producer, rank: int | None, attempt: str | None, monotonic: int
    ) -> None:
        """Record what a launcher's parent knows: about a rank, or the whole run of `source`."""
        self._record(event, source, rank, attempt, monotonic)

    def lost(self, gap: Gap) -> None:
        """Record that damaged blocks swallowed records."""
        reason = f"{gap.blocks} damaged blocks in the spool of producer {gap.producer.producer}"
        event = Dropped(count=gap.records, reason=reason)
        self._record(event, gap.producer, gap.producer.rank, None, time.monotonic_ns())

    def clock(self, rank: Producer, event: Clock) -> None:
        """Record how far the clock of a rank's node is off."""
        self._record(event, rank, None, None, time.monotonic_ns())

    def node_event(self, event: Event, *, monotonic: int | None = None) -> None:
        """Record what is no run's own, such as a line of the kernel; `monotonic` ns, else now."""
        if self._node is None:
            self._node = Producer(
                producer="",
                anchor=clock_anchor(time.monotonic_ns, time.time_ns),
                run=None,
                rank=None,
                node=node(os.environ),
                boot_id=self._boot_id,
                process_id=self._process_id,
            )
        now = time.monotonic_ns() if monotonic is None else monotonic
        self._record(event, self._node, None, None, now)

    def earlier_event(self, event: Event, wall: int) -> None:
        """Record what a log tells of an earlier boot, by the wall clock alone; `wall` UTC ns."""
        name = node(os.environ)
        writers = self._writers.setdefault((None, name), {})
        try:
            writer = writers.get(_EPOCH) or self._open(None, name, _EPOCH, boot_id=None)
        except OSError as error:
            _log.error("cannot record %s of node %s: %s", event.name, name, error)
            return
        writers[_EPOCH] = writer
        writer.event(event, None, None, wall, wall)

    def forget_all_but(self, runs: Collection[str | None]) -> None:
        """Close the spools of runs that have no rank left on this node."""
        self._close({key for key in self._writers if key[0] is not None and key[0] not in runs})

    def close(self) -> None:
        """Close every spool."""
        self._close(set(self._writers))

    def _close(self, keys: Collection[tuple[str | None, str | None]]) -> None:
        for key in keys:
            for writer in self._writers.pop(key).values():
                writer.close(delay=0.0)

    def _record(
        self,
        event: Event,
        source: Producer,
        rank: int | None,
        attempt: str | None,
        monotonic: int,
    ) -> None:
        try:
            writer = self._writer(source)
        except OSError as error:
            owner = f"node {source.node}" if source.run is None else f"run {source.run}"
            _log.error("cannot record %s of %s: %s", event.name, owner, error)
            return
        wall = time.time_ns() + monotonic - time.monotonic_ns()
        writer.event(event, attempt, rank, monotonic, wall)

    def _writer(self, rank: Producer) -> SpoolWriter:
        writers = self._writers.setdefault((rank.run, rank.node), {})
        # The anchor of an earlier boot belongs to another monotonic clock.
        same_boot = rank.boot_id == self._boot_id
        anchor = rank.anchor if same_boot else time.time_ns() - time.monotonic_ns()
        for known, writer in writers.items():
            if abs(known - anchor) < _SAME_ANCHOR:
                return writer
        writers[anchor] = self._open(rank.run, rank.node, anchor, boot_id=self._boot_id)
        return writers[anchor]

    def _open(
        self, run: str | None, node: str | None, anchor: int, boot_id: str | None
    ) -> SpoolWriter:
        producer = Producer(
            producer=uuid.uuid4().hex,
            anchor=anchor,
            run=run,
            rank=None,
            node=node,
            boot_id=boot_id,
            process_id=self._process_id,
        )
        return SpoolWriter(self._folder, producer, _LIMIT)
