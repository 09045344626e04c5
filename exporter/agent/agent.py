"""The node agent: follows every spool of the node and hands it to the collector.

One thread looks at the spools, exports one bounded batch, remembers what was acknowledged, and
only then deletes it. Whatever is killed at whatever moment, the next agent goes on from there.
"""

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from headway.events import Steps
from headway.exporter.agent.lock import remove_marker, renew_marker
from headway.exporter.agent.watchers import Watchers, watchers
from headway.exporter.ends import awaited, told_by_another
from headway.exporter.identity import boot_id, clock_anchor, node
from headway.exporter.node.clock_meter import ClockMeter
from headway.exporter.node.clock_news import ClockNews, Offset
from headway.exporter.node.metrics import (
    DAMAGED,
    FAILURES,
    REFUSED,
    SHIPPED,
    WATCHER_FAILURES,
    NodeMetrics,
)
from headway.exporter.node.witness import Witness
from headway.exporter.shipping import (
    REFUSED_FOLDER,
    REQUEST_TIME,
    NotTakenError,
    Shipper,
    num_records,
)
from headway.exporter.spooling.access import closed_spools, refusal
from headway.exporter.spooling.layout import spool_folder
from headway.exporter.spooling.positions import Positions
from headway.exporter.spooling.reader import Batch, clear_unfinished, spools
from headway.exporter.spooling.tailing import Tail
from headway.kernel_log.oom import OomKill
from headway.settings import AgentSettings

_log = logging.getLogger(__name__)

FLUSH_TIME = 20.0
"""Longest time in seconds from the signal to the end of the last flush."""
_ABSENCE = 3.0
"""Seconds for which the last flush waits for a collector that does not answer."""
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 5.0
"""Seconds to wait after the collector did not take a batch; doubled each time."""
_UNFINISHED = 600.0
"""Age in seconds at which a spool that is still being made belongs to nobody."""
_BEAT = 5.0
"""Seconds between two heartbeats of a silent rank, and between two signs of the agent's life."""


class Agent:
    """Ships the spools of one node."""

    def __init__(
        self,
        settings: AgentSettings,
        metrics: NodeMetrics,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Prepare; `monotonic` gives the clock of this node's events in ns."""
        self._settings = settings
        self._metrics = metrics
        self._folder = spool_folder(settings.spool)
        state = settings.state or self._folder
        self._refused = state / REFUSED_FOLDER
        self._positions = Positions(state)
        self._shipper = Shipper(
            endpoint=settings.endpoint,
            token=settings.token,
            refused=self._refused,
            ca_file=settings.ca_file,
        )
        self._meter = ClockMeter(
            endpoint=settings.endpoint,
            token=settings.token,
            ca_file=settings.ca_file,
            interval=settings.clock_interval,
            monotonic=monotonic,
        )
        self._anchor = clock_anchor(monotonic, time.time_ns)
        self._clock_news = ClockNews(state, boot_id())
        self._witness = Witness(self._folder, os.getpid(), boot_id())
        self._watchers = Watchers(watchers(settings, self._witness, metrics.samples, self._killed))
        self._tails: dict[str, Tail] = {}
        self._oom_told: set[str] = set()
        self._closed: set[str] = set()
        self._next_beat = 0.0
        self._next_export = 0.0
        self._last_export = -math.inf
        self._waiting = 0
        self._urgent = False
        self._delay = 0.0
        self._stop = threading.Event()
        self._deadline = math.inf

    def stop(self) -> None:
        """Ask `run` to flush and return; safe in a signal handler."""
        self._deadline = min(self._deadline, time.monotonic() + FLUSH_TIME)
        self._stop.set()

    def run(self) -> None:
        """Ship until told to stop, then flush what is there."""
        _log.info("shipping the spools in %s to %s", self._folder, self._shipper.endpoint)
        self._positions.keep_only([folder.name for folder in spools(self._folder)])
        while not self._stop.is_set():
            self.watch()
            more = time.monotonic() >= self._next_export and self.export(patient=True)
            if not more:
                self._stop.wait(self._settings.interval)
        self._flush()
        remove_marker(self._folder)

    def close(self) -> None:
        """Let go of everything."""
        self._watchers.close()
        self._meter.close()
        self._witness.close()
        self._shipper.close()

    def watch(self) -> None:
        """Find new spools, and tell which ranks live and which died."""
        folders = {folder.name: folder for folder in spools(self._folder)}
        self._leave_closed()
        for name in self._tails.keys() - folders.keys():
            del self._tails[name]
            self._metrics.counts.forget(name)
        for name in sorted(folders.keys() - self._tails.keys()):
            self._tails[name] = Tail(folders[name], self._positions.get(name))
        for tail in self._tails.values():
            self._watch(tail)
            self._look(tail)
        # after the look, which tells the end where the parent died before it could
        self._release([tail for tail in self._tails.values() if tail.is_finished and tail.is_rank])
        self._metrics.add(WATCHER_FAILURES, self._watchers.poll())
        self._compare_clocks()
        self._witness.forget_all_but({tail.run for tail in self._tails.values() if tail.is_rank})
        if time.monotonic() >= self._next_beat:
            self._next_beat = time.monotonic() + _BEAT
            renew_marker(self._folder)
            clear_unfinished(self._folder, _UNFINISHED)

    def export(self, *, patient: bool = False) -> bool:
        """Ship one batch; return whether more is waiting.

        A `patient` call leaves mere steps to a later one, which saves most of a request's bytes.
        """
        if patient and self._can_wait():
            return False
        self._last_export = time.monotonic()
        batches = self._read()
        envelopes = [envelope for _, batch in batches for envelope in batch.envelopes]
        try:
            shipment = self._shipper.ship(envelopes)
        except NotTakenError as error:
            self._failed(error)
            return False
        if envelopes and self._delay:
            _log.info("the collector at %s takes records again", self._shipper.endpoint)
            self._delay = 0.0
        self._metrics.add(SHIPPED, shipment.acknowledged)
        self._metrics.add(REFUSED, shipment.refused)
        if batches:
            self._acknowledge(batches)
        more = num_records(envelopes) >= self._settings.batch
        if not more:
            self._waiting, self._urgent = 0, False
        return more

    def _can_wait(self) -> bool:
        """Return whether nothing but a few steps is there, and not for long."""
        lately = time.monotonic() - self._last_export < self._settings.steps_interval
        return lately and not self._urgent and self._waiting < self._settings.batch

    def _look(self, tail: Tail) -> None:
        """Count what is new in a spool, whether or not the collector takes it."""
        batch = tail.look(self._settings.batch)
        if batch is None:
            return
        self._waiting += num_records(batch.envelopes)
        self._urgent |= batch.finished or any(
            not isinstance(envelope.event, Steps) for envelope in batch.envelopes
        )
        self._metrics.counts.add(tail.news(batch))

    def _leave_closed(self) -> None:
        """Say once of each spool that it belongs to somebody who keeps it closed."""
        closed = closed_spools(self._folder)
        self._metrics.closed_spools = len(closed)
        for folder in closed:
            if folder.name not in self._closed:
                _log.warning("%s", refusal(folder))
        self._closed = {folder.name for folder in closed}

    def _watch(self, tail: Tail) -> None:
        status = tail.status()
        if tail.producer is None or not tail.is_rank:
            return
        if status.alive:
            if tail.is_silent(status, time.monotonic_ns(), _BEAT):
                self._witness.alive(tail.producer, status)
        elif not status.closed and not self._is_told(tail.name):
            self._witness.exited(tail.producer, status, tail.was_alive)
            self._positions.tell_exit(tail.name)

    def _is_told(self, name: str) -> bool:
        return self._positions.exit_told(name) or told_by_another(self._folder / name)

    def _killed(self, kill: OomKill, monotonic: int) -> None:
        """Tell which rank the kernel killed for lack of memory; several lines tell of one kill."""
        for tail in self._tails.values():
            rank = tail.producer
            if (
                rank is not None
                and tail.is_rank
                and rank.process_id == kill.process_id
                and rank.boot_id == boot_id()
                and tail.name not in self._oom_told
                and not told_by_another(self._folder / tail.name)
            ):
                self._oom_told.add(tail.name)
                self._witness.out_of_memory(rank, tail.status(), monotonic)

    def _compare_clocks(self) -> None:
        reading = self._meter.poll()
        producers = (tail.producer for tail in self._tails.values() if tail.is_rank)
        ranks = [producer for producer in producers if producer is not None]
        self._clock_news.tell(ranks, reading, self._witness.clock)
        offsets = self._clock_news.offsets
        if reading is not None and not offsets:
            # Nobody records yet: this process's own clock is what is known of the node's.
            own = Offset(offset=reading.zero - self._anchor, error=reading.error)
            offsets = {node(os.environ): own}
        self._metrics.clocks = offsets

    def _read(self) -> list[tuple[Tail, Batch]]:
        """Read one batch of records in all, and let the spools served now come last next time."""
        budget = self._settings.batch
        batches = []
        for tail in list(self._tails.values()):
            batch = tail.read(budget)
            if batch is None:
                continue
            batches.append((tail, batch))
            self._tails[tail.name] = self._tails.pop(tail.name)
            budget -= num_records(batch.envelopes)
            if budget <= 0:
                break
        return batches

    def _acknowledge(self, batches: Sequence[tuple[Tail, Batch]]) -> None:
        for tail, batch in batches:
            if batch.finished:
                self._watch(tail)  # it may have died after the last look
            self._metrics.counts.add(tail.news(batch))
            gap = tail.acknowledge(batch)
            self._metrics.add(DAMAGED, batch.damaged)
            if gap is not None:
                self._witness.lost(gap)
        # Only what is remembered as acknowledged may be deleted.
        self._positions.put({tail.name: tail.position for tail, _ in batches})
        self._release([tail for tail, _ in batches])

    def _release(self, tails: Iterable[Tail]) -> None:
        """Delete what was acknowledged, but no whole spool that a launcher's parent is to see."""
        gone = []
        for tail in tails:
            if tail.is_finished:
                self._metrics.counts.forget(tail.name)
                if awaited(self._folder / tail.name):
                    continue
            if tail.release(self._refused):
                gone.append(tail.name)
                del self._tails[tail.name]
        if gone:
            self._positions.forget(gone)

    def _failed(self, error: NotTakenError) -> None:
        self._metrics.add(FAILURES, 1)
        if not self._delay:
            _log.warning("%s; the spools are kept and sent later", error)
        self._delay = min(max(2 * self._delay, _FIRST_DELAY), _LONGEST_DELAY)
        wait = self._delay if error.retry_after is None else error.retry_after
        self._next_export = time.monotonic() + min(wait, _LONGEST_DELAY)

    def _flush(self) -> None:
        """Ship what is there within the deadline; the rest waits for the next agent."""
        self.watch()
        self._watchers.close()
        self._witness.close()
        self.watch()
        answered = time.monotonic()
        while time.monotonic() < self._deadline - REQUEST_TIME:
            failures = self._metrics.counters[FAILURES]
            more = self.export()
            if self._metrics.counters[FAILURES] == failures:
                if not more:
                    return
                answered = time.monotonic()
            elif time.monotonic() - answered > _ABSENCE:
                break
            else:
                time.sleep(_FIRST_DELAY)
        _log.warning("not all was taken; the next agent ships the rest from %s", self._folder)
