"""A collector that was away: what it does not hear at once is no silence of the runs."""

from collections.abc import Callable
from pathlib import Path
from threading import Event as Flag

import pytest

from headway.collector.otlp.decoded import Decoded
from headway.collector.published import published
from headway.collector.service import Service
from headway.events import Envelope, RunStarted
from headway.settings import CollectorSettings
from headway.storage.store import EventStore
from records import ANCHOR, SECOND, record, steps
from timeline import at, timeline

SILENCES = {"headway_progress_silence_ratio", "headway_silence_seconds"}


def service(path: Path, clock: Callable[[], int]) -> Service:
    settings = CollectorSettings(database=path, commit_interval=0.01)
    started = Service(EventStore.open(path), settings, clock)
    ready = Flag()
    started.start(ready.set)
    assert ready.wait(60)
    return started


def send(service: Service, *envelopes: Envelope) -> None:
    decoded = Decoded(parts=envelopes, quarantined=(), size=1)
    service.committer.submit(decoded).result(60)


def silences(service: Service) -> dict[str, float]:
    return {name: value for name, _, value in published(service) if name in SILENCES}


def test_a_run_is_silent_only_once_a_collector_that_was_away_has_listened_for_a_while(
    tmp_path: Path,
) -> None:
    now = ANCHOR + 61 * SECOND
    path = tmp_path / "events.duckdb"
    first = service(path, lambda: now)
    send(first, record(1, RunStarted(run_name="llama")), steps(2, 60))
    assert silences(first).keys() == SILENCES
    first.close()

    now = ANCHOR + 1_261 * SECOND
    second = service(path, lambda: now)
    assert silences(second) == {}
    send(second, steps(61, 70))  # the agents ship what they kept, the oldest first
    assert silences(second) == {}
    send(second, steps(71, 1_261))
    found = silences(second)
    assert found.keys() == SILENCES
    assert max(found.values()) < 60
    second.close()

    now = ANCHOR + 2_461 * SECOND
    third = service(path, lambda: now)
    assert silences(third) == {}
    now += 181 * SECOND
    assert silences(third)["headway_progress_silence_ratio"] > 1
    third.close()


STOPPED = """
0      allocation 4
0      attempt A launcher world=1
0-100  steps 1-100
{}
110    exit signal=15
"""


@pytest.mark.parametrize(
    ("stop", "told"), [("100 stop preemption", set()), ("", {"headway_silence_seconds"})]
)
def test_a_run_that_waits_for_machines_is_not_called_silent(
    tmp_path: Path, stop: str, told: set[str]
) -> None:
    serving = service(tmp_path / "events.duckdb", lambda: at(2_000))
    send(serving, *timeline(STOPPED.format(stop)))
    silent = {name for name, value in silences(serving).items() if value > 300}
    assert silent == told
    serving.close()
