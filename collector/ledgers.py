"""The ledger of every run, kept current from the events that are stored.

A snapshot is computed when somebody asks and something changed: new events, or time itself while
the run is live, and then at most once a second. Knows no database and reads an injected clock.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from headway.collector.node_clocks import NodeClocks
from headway.collector.node_feed import NodeFeed
from headway.events import Envelope, RunStarted
from headway.expiry import Expiry
from headway.ledger import Ledger, Timeline
from headway.ledger.segments import FrozenSegment
from headway.report import report, summary

_LOG = logging.getLogger(__name__)

_LIVE_STEP = 1_000_000_000
"""A live ledger is at most this old, in nanoseconds."""


class NoSuchRun(LookupError):  # noqa: N818  # the condition reads as a name
    """A run id or name of which no event is stored."""


class LedgerFailed(RuntimeError):  # noqa: N818  # the condition reads as a name
    """The events of a run are stored, but its ledger could not be computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A run's ledger at one moment and what is derived from it; equal versions are equal."""

    version: str
    ledger: Ledger
    report: dict[str, Any]
    summary: dict[str, Any]
    newest: int


class _Run:
    """One run's timeline with the snapshot that was computed last.

    New events only queue up here, so that no commit waits for a ledger that is being computed.
    """

    def __init__(self, run: str, clock: Callable[[], int]) -> None:
        self.name = run.rpartition("-")[0] or run
        self.started: int | None = None
        self._run = run
        self._clock = clock
        self._queue_lock = threading.Lock()
        self._queue: list[Envelope] = []
        self._num_changes = 0
        self._clocks = NodeClocks()
        self._compute_lock = threading.Lock()
        self._timeline = Timeline(run)
        self._failure: Exception | None = None
        self._snapshot: Snapshot | None = None
        self._computed = (-1, 0)

    def restore(self, segments: Sequence[FrozenSegment]) -> None:
        """Take what is left of expired steps, before any event."""
        self._timeline.add_segments(segments)

    def expire(self, found: Expiry) -> None:
        """Let go of raw records that are no longer stored; what the ledger says stays."""
        with self._compute_lock:
            self._timeline = self._timeline.without(found.removed, found.kept, found.segments)
        with self._queue_lock:
            self._num_changes += 1

    def add(self, envelopes: Sequence[Envelope]) -> None:
        with self._queue_lock:
            self._queue += envelopes
            self._num_changes += 1
            self._clocks.add(envelopes)
            for envelope in envelopes:
                time = envelope.anchor + envelope.monotonic
                self.started = time if self.started is None else min(self.started, time)
                if isinstance(envelope.event, RunStarted):
                    self.name = envelope.event.run_name

    def add_of_nodes(self, envelopes: Sequence[Envelope]) -> None:
        """Take events of the run's nodes, which are no sign of the run itself."""
        with self._queue_lock:
            self._queue += envelopes
            self._num_changes += 1

    def snapshot(self) -> Snapshot:
        with self._compute_lock:
            now = self._clock()
            with self._queue_lock:
                queue, self._queue = self._queue, []
                num_changes, newest = self._num_changes, self._clocks.newest()
            computed, as_of = self._computed
            if (
                self._snapshot is not None
                and computed == num_changes
                and (not self._snapshot.report["provisional"] or now - as_of < _LIVE_STEP)
            ):
                return self._snapshot
            try:
                ledger = self._ledger(queue, now)
                built = report(ledger)
                self._snapshot = Snapshot(
                    version=f"{num_changes}-{now}",
                    ledger=ledger,
                    report=built,
                    summary=summary(built),
                    newest=newest,
                )
            except Exception as error:
                # A defect met by one run's events must not hide the other runs.
                _LOG.exception("the ledger of %r could not be computed", self._run)
                raise LedgerFailed(
                    f"the ledger of {self._run!r} could not be computed: {error!r}"
                ) from error
            self._computed = (num_changes, now)
            return self._snapshot

    def _ledger(self, new: Sequence[Envelope], now: int) -> Ledger:
        if self._failure is not None:
            raise self._failure
        try:
            self._timeline.add(new)
        except Exception as error:
            self._failure = error  # half of the events are in, so no later ledger would be right
            raise
        return self._timeline.ledger(now)


class Ledgers:
    """The timelines of all runs, found by run id or by name."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """Start without any run; `clock` gives the time in UTC nanoseconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}
        self._feed = NodeFeed()

    def restore(self, segments: Mapping[str, Sequence[FrozenSegment]]) -> None:
        """Take what is left of expired steps by run, before any event of it."""
        for run, listed in segments.items():
            with self._lock:
                found = self._runs.setdefault(run, _Run(run, self._clock))
            found.restore(listed)

    def add(self, envelopes: Sequence[Envelope]) -> None:
        """Take stored events; those of a node go to the runs that have ranks on it."""
        by_run: dict[str, list[Envelope]] = defaultdict(list)
        for envelope in envelopes:
            if envelope.run is not None:
                by_run[envelope.run].append(envelope)
        for run, group in by_run.items():
            with self._lock:
                if run not in self._runs:
                    self._runs[run] = _Run(run, self._clock)
                found = self._runs[run]
            found.add(group)
        with self._lock:
            given = self._feed.add(envelopes)
            for run, group in given.items():
                if group:
                    self._runs[run].add_of_nodes(group)

    def expire(self, run: str, found: Expiry) -> None:
        """Let go of a run's raw records that are no longer stored."""
        with self._lock:
            known = self._runs.get(run)
        if known is not None:
            known.expire(found)

    def of_node(self, node: str) -> Sequence[Envelope]:
        """Return what a node told of its GPUs and its health, in order of time."""
        with self._lock:
            return self._feed.rare(node)

    def nodes(self) -> list[str]:
        """Return the nodes on which a run had a rank, or which told of themselves."""
        with self._lock:
            return self._feed.nodes()

    def runs(self) -> list[str]:
        """Return the ids of all runs."""
        with self._lock:
            return list(self._runs)

    def snapshot(self, run: str) -> Snapshot:
        """Return the current ledger of a run, given by its id or, the newest of it, by its name.

        Raises:
            NoSuchRun: neither an id nor a name of a known run.
            LedgerFailed: a defect of the ledger.
        """
        with self._lock:
            if run in self._runs:
                found = self._runs[run]
            else:
                named = [item for item in self._runs.values() if item.name == run]
                if not named:
                    raise NoSuchRun(f"no event of a run {run!r} has arrived")
                found = max(named, key=lambda item: item.started or 0)
        return found.snapshot()

    def snapshots(self) -> list[Snapshot]:
        """Return the current ledgers of all runs, the newest run first; failed ones left out."""
        with self._lock:
            runs = sorted(self._runs.values(), key=lambda item: item.started or 0, reverse=True)
        found = []
        for run in runs:
            with suppress(LedgerFailed):
                found.append(run.snapshot())
        return found
