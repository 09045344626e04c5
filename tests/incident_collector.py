"""A real collector that holds one run whose only rank died of an exception."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import httpx

from headway.alerts.site import DEFAULT
from headway.cli.alerting import desk
from headway.collector.api import application
from headway.collector.otlp.bodies import PROTOBUF
from headway.collector.service import Service
from headway.events import AttemptStarted, Envelope, Fault, RankExited, RunStarted
from headway.settings import ClientSettings, CollectorSettings
from headway.storage.alert_book import AlertBook
from headway.storage.client import CollectorClient
from headway.storage.store import EventStore
from otlp_requests import body
from records import ANCHOR, SECOND, record, steps
from served import served

WAIT = 30.0
LATER = itertools.count()
"""Nanoseconds by which the collector's clock moves on with each look at it."""


def broken(run: str, producer: str) -> list[Any]:
    """A run whose rank died of an exception after twelve steps."""
    return [
        record(1, RunStarted(run_name="llama"), producer=producer, run=run),
        record(2, AttemptStarted(layer="launcher", world_size=1), producer=producer, run=run),
        steps(3, 12, producer=producer, run=run),
        record(13, Fault(kind="exception", exception="ValueError"), producer=producer, run=run),
        record(14, RankExited(exit_code=1, by="itself"), producer=producer, run=run),
    ]


@dataclass
class Running:
    """A served collector with one broken run, and its client."""

    client: CollectorClient
    http: httpx.Client
    service: Service
    address: str


@contextmanager
def running(
    path: Path,
    envelopes: Sequence[Envelope] | None = None,
    now: int = ANCHOR + 100 * SECOND,
    settings: CollectorSettings | None = None,
) -> Iterator[Running]:
    """Serve a collector that holds some envelopes, by default one broken run, at a time in ns."""
    ready = Event()
    service = Service(
        EventStore.open(path),
        replace(settings or CollectorSettings(), commit_interval=0.0, database=path),
        lambda: now + next(LATER),
    )
    service.start(ready.set)
    book = AlertBook(path.with_suffix(".alerts.sqlite"))
    service.alerting = desk(service, book, DEFAULT, "http://127.0.0.1:8752")
    with (
        closing(service),
        closing(book),
        served(application(service)) as address,
        httpx.Client(base_url=address) as http,
        CollectorClient(ClientSettings(endpoint=address)) as client,
    ):
        assert ready.wait(WAIT)
        content = body(broken("llama-1", "ab" * 16) if envelopes is None else envelopes)
        assert http.post("/v1/logs", content=content, headers={"content-type": PROTOBUF}).is_success
        yield Running(client, http, service, address)
