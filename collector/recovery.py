"""How the collector opens its database, and what it tells where that took a repair.

Records that had been acknowledged and are gone are told to the ledger of their run as dropped, so
that they show as a loss and not as silence.
"""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from headway.blocks import Part, of_kinds
from headway.events import Dropped, Envelope, Event, StorageRecovered
from headway.storage.opening import Recovery, recover
from headway.storage.store import EventStore

_LOG = logging.getLogger(__name__)


def open_store(path: Path, clock: Callable[[], int]) -> EventStore:
    """Open or create the database, of which the caller has the lock; `clock` is UTC ns.

    Raises:
        StoreError: it cannot be used, and it was not changed.
    """
    recovery = recover(path, clock)
    store = EventStore.open(path)
    if recovery is not None:
        aside = ", ".join(str(one) for one in recovery.set_aside) or "nothing"
        _LOG.warning(
            "%s; set aside: %s; %d bytes of its log were whole and %d were not; "
            "acknowledged records lost: %d",
            recovery.words,
            aside,
            recovery.kept,
            recovery.damaged,
            sum(item.count for item in recovery.lost),
        )
        store.append(recovery_events(recovery, clock()))
        store.settle()
    return store


def recovery_events(recovery: Recovery, now: int) -> list[Envelope]:
    """Return the collector's own events about a recovery at `now`, in UTC ns.

    Their producers follow from what happened: told twice, it is stored once.
    """
    identity = repr((recovery.words, recovery.set_aside, recovery.lost))
    lost: dict[str | None, int] = {}
    for item in recovery.lost:
        lost[item.run] = lost.get(item.run, 0) + item.count
    told = StorageRecovered(
        reason=recovery.words,
        set_aside=tuple(str(path) for path in recovery.set_aside),
        kept=recovery.kept,
        damaged=recovery.damaged,
        lost=sum(lost.values()),
    )
    reason = "acknowledged, and missing when the collector opened its database"
    return [_envelope(identity, now, None, told)] + [
        _envelope(identity, now, run, Dropped(count=count, reason=reason))
        for run, count in lost.items()
    ]


class Recoveries:
    """Counts what was ever told of recoveries, from the stored events."""

    def __init__(self) -> None:
        """Start without any."""
        self._lock = threading.Lock()
        self._count = 0
        self._lost = 0

    def add(self, parts: Iterable[Part]) -> None:
        """Take stored events."""
        for envelope in of_kinds(parts, StorageRecovered):
            if isinstance(envelope.event, StorageRecovered):
                with self._lock:
                    self._count += 1
                    self._lost += envelope.event.lost

    def counts(self) -> tuple[int, int]:
        """Return the number of recoveries and of the records that they could not bring back."""
        with self._lock:
            return self._count, self._lost


def _envelope(identity: str, now: int, run: str | None, event: Event) -> Envelope:
    name = f"{identity} {run!r} {event.name}"
    return Envelope(
        producer=hashlib.sha256(name.encode()).hexdigest()[:32],
        anchor=now,
        first_sequence=0,
        last_sequence=0,
        run=run,
        wall=now,
        monotonic=0,
        event=event,
    )
