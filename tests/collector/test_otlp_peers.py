"""Real senders: the OpenTelemetry SDK's exporters, and rotel, a collector of somebody else.

rotel batches anew and passes batches on in parallel, so that order changes. Its version 0.0.1a15
loses the resource where it splits a batch, so its batches must be larger than an agent's.
"""

import importlib.util
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from headway.collector.api import application
from headway.collector.service import Service
from headway.events import Envelope, Note, PhaseEnded
from headway.exporter.shipping import to_otlp
from headway.settings import CollectorSettings
from headway.storage.store import EventStore
from records import ANCHOR, SECOND, record, steps
from served import served
from span_requests import RESOURCE

WAIT = 60.0
SENT = [
    *(record(number, Note(text=f"note {number}")) for number in range(1, 400)),
    steps(400, 1399),
    *(record(number, Note(text="late")) for number in range(1400, 1500)),
]


@contextmanager
def collecting(folder: Path) -> Iterator[tuple[str, Service]]:
    settings = CollectorSettings(database=folder / "db", tokens=folder / "tokens")
    ready = threading.Event()
    service = Service(EventStore.open(settings.database), settings, lambda: ANCHOR + 2000 * SECOND)
    service.start(ready.set)
    with closing(service), served(application(service)) as address:
        assert ready.wait(WAIT)
        yield address, service


@contextmanager
def rotel(endpoint: str, folder: Path) -> Iterator[str]:
    """Start rotel in front of a collector; gives its address."""
    package = importlib.util.find_spec("rotel")
    if package is None or package.origin is None:
        pytest.skip("rotel, a collector of somebody else, is not installed here")
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as http_port,
        closing(socket.create_server(("127.0.0.1", 0))) as grpc_port,
    ):
        ports = [each.getsockname()[1] for each in (http_port, grpc_port)]
    process = subprocess.Popen(
        [
            str(Path(package.origin).parent / "rotel-agent"),
            "start",
            f"--otlp-http-endpoint=127.0.0.1:{ports[0]}",
            f"--otlp-grpc-endpoint=127.0.0.1:{ports[1]}",
            f"--pid-file={folder / 'rotel.pid'}",
            "--exporter=otlp",
            "--otlp-exporter-protocol=http",
            f"--otlp-exporter-endpoint={endpoint}",
            "--batch-max-size=100000",
            "--batch-timeout=50ms",
        ],
        env={"PATH": os.environ.get("PATH", ""), "ROTEL_TELEMETRY_DISABLED": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + WAIT
        while not listening(ports[0]):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield f"http://127.0.0.1:{ports[0]}"
    finally:
        process.terminate()
        process.wait(WAIT)


def listening(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def export(address: str, envelopes: Sequence[Envelope]) -> None:
    exporter = OTLPLogExporter(endpoint=f"{address}/v1/logs", compression=Compression.Gzip)
    assert exporter.export(to_otlp(envelopes)) is LogRecordExportResult.SUCCESS
    exporter.shutdown()  # type: ignore[no-untyped-call]


def trace(address: str) -> None:
    """Trace ten iterations, an evaluation and a request of no training."""
    provider = TracerProvider(resource=Resource(RESOURCE))
    exporter = OTLPSpanExporter(endpoint=f"{address}/v1/traces", compression=Compression.Gzip)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("megatron")
    for number in range(1, 11):
        tracer.start_span(
            "megatron.train.iteration",
            start_time=ANCHOR + number * SECOND,
            attributes={"megatron.iteration": number},
        ).end(ANCHOR + (number + 1) * SECOND)
    tracer.start_span("megatron.evaluate", start_time=ANCHOR + 11 * SECOND).end(
        ANCHOR + 13 * SECOND
    )
    tracer.start_span("GET /").end()
    provider.shutdown()


def stored(service: Service, records: int) -> list[Envelope]:
    """Wait until so many records are stored, and return what is, in order."""
    deadline = time.monotonic() + WAIT
    while service.committer.counts()["stored"] < records:
        assert time.monotonic() < deadline, service.committer.counts()
        time.sleep(0.05)
    found = service.store.envelopes()
    return sorted(found, key=lambda envelope: (envelope.producer, envelope.first_sequence))


def check_spans(found: Sequence[Envelope]) -> None:
    names = sorted(envelope.event.name for envelope in found)
    assert names == [PhaseEnded.name, *["steps"] * 10]
    assert {envelope.run for envelope in found} == {"llama-1"}


def test_the_sdks_own_exporters_are_understood(tmp_path: Path) -> None:
    with collecting(tmp_path) as (address, service):
        export(address, SENT)
        assert stored(service, 1499) == SENT
    (tmp_path / "traces").mkdir()
    with collecting(tmp_path / "traces") as (address, service):
        trace(address)
        check_spans(stored(service, 11))
        trace(address)
        assert service.committer.counts()["refused"] == 2
        assert len(stored(service, 22)) == 22


@pytest.mark.slow
def test_what_passes_through_another_collector_is_stored_once(tmp_path: Path) -> None:
    with (
        collecting(tmp_path) as (address, service),
        rotel(address, tmp_path) as front,
    ):
        for begin in range(0, len(SENT), 100):
            export(front, SENT[begin : begin + 100])
        assert stored(service, 1499) == SENT
        export(front, SENT)
        deadline = time.monotonic() + WAIT
        while service.committer.counts()["duplicate"] < 1499:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert service.store.num_gaps == 0
        assert httpx.get(f"{address}/api/v1/quarantine").json()["records"] == []
        trace(front)
        of_spans = [one for one in stored(service, 1510) if one not in SENT]
        check_spans(of_spans)
