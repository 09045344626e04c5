"""The collector's wall clock is set: no age turns negative, and no ledger is harmed."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest

from headway.collector.otlp.decoded import Decoded
from headway.collector.samples import aging_samples, ingest_samples, run_samples
from headway.collector.service import Service
from headway.events import CheckpointFinalized, CheckpointScheduled, Envelope, RunStarted
from headway.ledger import Timeline
from headway.report import report
from headway.settings import CollectorSettings
from headway.storage.store import EventStore
from records import ANCHOR, SECOND, record, steps

HOUR = 3600 * SECOND
RUN = "llama-1"
SENT = [
    record(1, RunStarted(run_name="llama")),
    steps(2, 50),
    record(51, CheckpointScheduled(checkpoint="c50", step=50)),
    record(52, CheckpointFinalized(checkpoint="c50", step=50)),
    steps(53, 90),
]


class SetClock:
    """A wall clock that somebody sets."""

    def __init__(self) -> None:
        self.now = ANCHOR + 91 * SECOND

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def service(tmp_path: Path, clock: SetClock) -> Iterator[Service]:
    settings = CollectorSettings(database=tmp_path / "events.duckdb", commit_interval=0.01)
    started = Service(EventStore.open(settings.database), settings, clock)
    ready = Flag()
    started.start(ready.set)
    assert ready.wait(60)
    yield started
    started.close()


def send(service: Service, *envelopes: Envelope) -> None:
    decoded = Decoded(parts=envelopes, quarantined=(), size=1)
    service.committer.submit(decoded).result(60)


def negatives(value: Any, path: str = "") -> list[str]:
    """Return where a report holds a negative number."""
    if isinstance(value, dict):
        return [
            found for name, item in value.items() for found in negatives(item, f"{path}/{name}")
        ]
    if isinstance(value, list | tuple):
        return [found for item in value for found in negatives(item, path)]
    return [path] if isinstance(value, int | float) and value < 0 else []


@pytest.mark.slow
@pytest.mark.parametrize("jump", [-365 * 24 * HOUR, -HOUR, -30 * SECOND, HOUR, 365 * 24 * HOUR])
def test_a_clock_that_is_set_makes_no_age_negative_and_refuses_nothing(
    service: Service, clock: SetClock, jump: int
) -> None:
    send(service, *SENT[:3])
    service.ledgers.snapshot(RUN)
    clock.now += jump
    send(service, *SENT[3:])
    snapshot = service.ledgers.snapshot(RUN)
    assert negatives(snapshot.report) == []
    of_run = [*run_samples(snapshot), *aging_samples(snapshot, clock())]
    samples = [*of_run, *ingest_samples(service)]
    assert [item for item in samples if item[2] is not None and item[2] < 0] == []
    counts = service.committer.counts()
    assert (counts["stored"], counts["quarantined"]) == (90, 0)
    clock.now = ANCHOR + 91 * SECOND  # and set right again
    send(service, steps(91, 91))
    undisturbed = Timeline(RUN)
    undisturbed.add([*SENT, steps(91, 91)])
    assert service.ledgers.snapshot(RUN).report == report(undisturbed.ledger(clock()))
