"""The collector without its HTTP: store, ledgers and committer, from start to stop."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from headway.blocks import Part, of_kinds
from headway.collector.alerting import Alerting, NoticeLog
from headway.collector.fleet_shares import FleetShares
from headway.collector.ingest import Busy, Committer
from headway.collector.intake import Intake
from headway.collector.ledgers import Ledgers
from headway.collector.node_clocks import NodeClocks
from headway.collector.node_histories import NodeHistories
from headway.collector.own_costs import OwnCosts
from headway.collector.own_events import OwnEvents
from headway.collector.recovery import Recoveries
from headway.collector.refreshing import Refresher
from headway.collector.remarks import Remarks
from headway.collector.results import Results
from headway.collector.run_ledger import LedgerFailed, StillComputing
from headway.collector.search_index import SearchIndex
from headway.collector.upkeep import Upkeep
from headway.events import (
    Envelope,
    IncidentAcknowledged,
    IncidentCorrected,
    NodeMemory,
    Note,
    ResultAttached,
)
from headway.ledger.segments import FrozenSegment
from headway.settings import CollectorSettings
from headway.storage.store import EventStore

_LOG = logging.getLogger(__name__)

_ENVELOPES_AT_ONCE = 10_000


class Service:
    """Everything that requests need; ready once the ledgers are rebuilt from the store."""

    def __init__(
        self, store: EventStore, settings: CollectorSettings, clock: Callable[[], int]
    ) -> None:
        """Take over an open store; `clock` gives the time in UTC nanoseconds."""
        self.store = store
        self.settings = settings
        self.clock = clock
        self.intake = Intake(settings.queue_limit)
        self.node_clocks = NodeClocks()
        self.own_costs = OwnCosts()
        self.recoveries = Recoveries()
        self.remarks = Remarks()
        self.results = Results()
        self.own_events = OwnEvents(clock)
        self.fleet_shares = FleetShares()
        self.searched = SearchIndex(self.fleet_shares)
        self.alerting: Alerting | None = None
        self.closed_log: NoticeLog | None = None
        """What alerting told while there was a collector, for a file that is only read."""
        self._ledgers = Ledgers(clock, self._stored, settings.ledger_limit, settings.goodput_target)
        self._node_histories = NodeHistories(self._ledgers, self.node_clocks, store, clock)
        self._refresher = Refresher(self._ledgers, clock)
        self._upkeep = Upkeep(store, self._ledgers, settings, clock)
        self._committer: Committer | None = None
        self._complete = False
        self._stopping = threading.Event()
        self._rebuilding: threading.Thread | None = None

    @property
    def committer(self) -> Committer:
        """Return the way into the store.

        Raises:
            Busy: the ledgers are not rebuilt yet.
        """
        if self._committer is None:
            raise Busy("the collector is not ready yet: ledgers are being rebuilt")
        return self._committer

    @property
    def notice_log(self) -> NoticeLog | None:
        """Return what tells whom alerts were told; None where nothing is on record."""
        return self.alerting or self.closed_log

    @property
    def ledgers(self) -> Ledgers:
        """Return the ledgers.

        Raises:
            Busy: they are not rebuilt yet, and half a ledger is a wrong one.
        """
        self._check_complete()
        return self._ledgers

    @property
    def node_histories(self) -> NodeHistories:
        """Return the histories of nodes.

        Raises:
            Busy: the ledgers are not rebuilt yet.
        """
        self._check_complete()
        return self._node_histories

    @property
    def ready(self) -> bool:
        """Return whether events are taken and every ledger is complete."""
        return self._committer is not None and not self._stopping.is_set()

    def start(
        self, on_ready: Callable[[], None], on_failed: Callable[[], None] = lambda: None
    ) -> None:
        """Rebuild the ledgers in a thread, then take events; tell how that ended."""
        self._rebuilding = threading.Thread(
            target=self._open, args=(on_ready, on_failed), name="headway-rebuild"
        )
        self._rebuilding.start()

    def read(self) -> None:
        """Rebuild the ledgers of a store that is only read; no event is taken."""
        if not self._complete:
            self._rebuild()
            self._complete = True

    def _check_complete(self) -> None:
        if not self._complete:
            raise Busy("the collector is not ready yet: ledgers are being rebuilt")

    def close(self) -> None:
        """Commit what waits and close the store."""
        self._stopping.set()
        if self._committer is not None:
            self._committer.close()
        if self._rebuilding is not None:
            self._rebuilding.join()
        self._refresher.close()
        self._upkeep.close()
        self.store.close()

    def _open(self, on_ready: Callable[[], None], on_failed: Callable[[], None]) -> None:
        try:
            self._rebuild()
        except Exception:
            _LOG.exception("the ledgers could not be rebuilt from the store")
            on_failed()
            return
        if not self._stopping.is_set():
            self._ledgers.await_news()
            self._complete = True
            self._committer = Committer(self.store, self.settings, self._publish, self.clock)
            self._upkeep.start()
            on_ready()
            self._warm()
            self._refresher.start()

    def _rebuild(self) -> None:
        self._ledgers.restore(self.store.keeping.segments())
        batch: list[Envelope] = []
        for envelope in self.store.envelopes():
            if self._stopping.is_set():
                return
            batch.append(envelope)
            if len(batch) == _ENVELOPES_AT_ONCE:
                self._publish(batch, self._prepare)
                batch = []
        self._publish(batch, self._prepare)

    def _stored(
        self, run: str, stays: Mapping[str, tuple[int, int]]
    ) -> tuple[Sequence[FrozenSegment], Sequence[Envelope]]:
        """Return what is stored of a run, for a ledger that was let go."""
        while True:
            segments = self.store.keeping.segments(run).get(run, [])
            events = list(self.store.envelopes(run))
            # Where steps expired meanwhile they are in neither, or in both.
            if self.store.keeping.segments(run).get(run, []) == segments:
                return segments, [*events, *self.store.of_nodes(NodeMemory.name, stays)]

    def _warm(self) -> None:
        """Compute every ledger once, so that nobody who asks has to wait for a thousand."""
        for run in reversed(self._ledgers.runs()):
            if self._stopping.is_set():
                return
            self._prepare(run)

    def _prepare(self, run: str) -> None:
        """Compute a ledger, and what questions about all runs ask of it while it is held."""
        with suppress(LedgerFailed, StillComputing):
            snapshot = self._ledgers.compute(run)
            self.fleet_shares.prepare(snapshot)
            self._node_histories.prepare(snapshot)

    def _publish(self, parts: Sequence[Part], leaving: Callable[[str], None] | None = None) -> None:
        self._ledgers.add(parts, leaving)
        self.node_clocks.add(parts)
        self.own_costs.add(parts)
        self.recoveries.add(parts)
        self.remarks.add(of_kinds(parts, Note, IncidentAcknowledged, IncidentCorrected))
        self.results.add(of_kinds(parts, ResultAttached))
