"""Events that the collector itself records: what people said through its API.

They are stored like any other event, so that a ledger computed again says the same. Each run has
a producer of its own here, and so has what is about none, new after every start: a number that was
given once is never reused.
"""

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from headway.collector.ingest import Committer
from headway.collector.otlp.decoded import Decoded
from headway.events import Envelope, Event


@dataclass(slots=True)
class _Producer:
    """Identity, clock and next number of the collector's records about one run."""

    identity: str
    anchor: int
    sequence: int = 0


class OwnEvents:
    """Numbers the collector's own events and stores them."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """Start without any; `clock` gives the time in UTC nanoseconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._producers: dict[str | None, _Producer] = {}

    def record(self, committer: Committer, run: str | None, event: Event) -> None:
        """Store an event about a run, or about none.

        Returns only when it is durable and in the run's ledger.

        Raises:
            Busy: it could not be stored; its number stays free.
        """
        with self._lock:
            now = self._clock()
            producer = self._producers.get(run)
            if producer is None:
                producer = self._producers[run] = _Producer(uuid.uuid4().hex, now)
            envelope = Envelope(
                producer=producer.identity,
                anchor=producer.anchor,
                first_sequence=producer.sequence,
                last_sequence=producer.sequence,
                run=run,
                wall=now,
                monotonic=max(now - producer.anchor, 0),
                event=event,
            )
            decoded = Decoded(parts=(envelope,), quarantined=(), size=0)
            committer.submit(decoded).result()
            producer.sequence += 1
