"""What arrived at a collector or an endpoint, as tests of whole pipelines ask for it."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from headway.events import Envelope, Steps
from headway.storage.store import EventStore


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for what real processes do."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited for too long"
        time.sleep(0.02)


def stored(database: Path) -> list[Envelope]:
    """Return what a collector that has ended left in its database."""
    store = EventStore.open(database)
    try:
        return list(store.envelopes())
    finally:
        store.close()


def numbers(envelopes: Iterable[Envelope]) -> dict[str, list[int]]:
    """Return the sequence numbers of each producer, in order, doubles included."""
    found: dict[str, list[int]] = {}
    for envelope in envelopes:
        found.setdefault(envelope.producer, []).extend(
            range(envelope.first_sequence, envelope.last_sequence + 1)
        )
    return {producer: sorted(sequence) for producer, sequence in sorted(found.items())}


def steps_in(envelopes: Iterable[Envelope]) -> list[int]:
    """Return the numbers of the completed steps, in order of arrival."""
    return [
        item.event.first_step + index
        for item in envelopes
        if isinstance(item.event, Steps)
        for index in range(item.last_sequence - item.first_sequence + 1)
    ]
