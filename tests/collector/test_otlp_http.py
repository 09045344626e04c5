"""OTLP over real HTTP: every status the specification asks for, and bounds on what is under way."""

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from google.protobuf import json_format
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from prometheus_client.parser import text_string_to_metric_families

from headway.blocks import expanded
from headway.collector.access import Access
from headway.collector.api import application
from headway.collector.otlp.bodies import JSON, PROTOBUF
from headway.collector.otlp.decoded import Decoded
from headway.collector.otlp.logs import decode_logs
from headway.collector.otlp_api import allowed
from headway.collector.service import Service
from headway.events import Envelope, Note, RunStarted
from headway.settings import CollectorSettings
from headway.storage.store import EventStore
from otlp_requests import body, request
from records import ANCHOR, SECOND, record, steps
from served import served
from span_requests import SPAN, spans

WAIT = 30.0


@dataclass
class Collecting:
    """A served collector."""

    address: str
    http: httpx.Client
    service: Service

    def post(self, path: str, content: bytes, **headers: str) -> httpx.Response:
        given = {"content-type": PROTOBUF} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return self.http.post(path, content=content, headers=given)

    def stored(self) -> list[Envelope]:
        return list(self.service.store.envelopes())

    def metrics(self) -> dict[str, dict[tuple[str, ...], float]]:
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for family in text_string_to_metric_families(self.http.get("/metrics").text):
            for sample in family.samples:
                found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
        return found


@contextmanager
def collecting(folder: Path, **options: Any) -> Iterator[Collecting]:
    options = {"commit_interval": 0.0, "database": folder / "events.duckdb"} | options
    settings = CollectorSettings(tokens=folder / "tokens.json", **options)
    ready = threading.Event()
    service = Service(EventStore.open(settings.database), settings, lambda: ANCHOR + 100 * SECOND)
    service.start(ready.set)
    with (
        closing(service),
        served(application(service)) as address,
        httpx.Client(base_url=address, timeout=WAIT) as http,
    ):
        assert ready.wait(WAIT)
        yield Collecting(address, http, service)


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collecting]:
    with collecting(tmp_path) as found:
        yield found


def test_logs_as_protobuf_and_as_json_are_stored_and_answered_in_their_form(
    collector: Collecting,
) -> None:
    answer = collector.post("/v1/logs", body([steps(1, 5)]))
    assert (answer.status_code, answer.headers["content-type"]) == (200, PROTOBUF)
    assert ExportLogsServiceResponse.FromString(answer.content) == ExportLogsServiceResponse()
    content = json_format.MessageToJson(request([steps(6, 9)])).encode()
    packed = gzip.compress(content)
    answer = collector.post("/v1/logs", packed, content_type=JSON, content_encoding="gzip")
    assert (answer.status_code, answer.headers["content-type"]) == (200, JSON)
    assert answer.json() == {}
    assert collector.stored() == [steps(1, 5), steps(6, 9)]


def test_an_empty_request_is_fine(collector: Collecting) -> None:
    assert collector.post("/v1/logs", b"").status_code == 200
    assert collector.post("/v1/traces", b"{}", content_type=JSON).status_code == 200


def test_spans_as_protobuf_and_as_json_are_the_same_events(collector: Collecting) -> None:
    message = spans(SPAN)
    answer = collector.post("/v1/traces", message.SerializeToString())
    assert answer.status_code == 200
    assert ExportTraceServiceResponse.FromString(answer.content) == ExportTraceServiceResponse()
    before = collector.stored()
    assert [envelope.event.name for envelope in before] == ["steps"]
    as_json = json_format.MessageToDict(message)
    (span,) = as_json["resourceSpans"][0]["scopeSpans"][0]["spans"]
    span["traceId"], span["spanId"] = SPAN["trace_id"].hex(), SPAN["span_id"].hex()
    answer = collector.post("/v1/traces", json.dumps(as_json).encode(), content_type=JSON)
    assert answer.json() == {}
    assert collector.stored() == before
    assert collector.metrics()["headway_ingest_records_total"]["duplicate",] == 1


def test_foreign_telemetry_is_refused_politely_and_not_kept(collector: Collecting) -> None:
    foreign = request([record(1, Note(text="x"))])
    foreign.resource_logs[0].scope_logs[0].log_records[0].event_name = "login of user 7"
    answer = collector.post("/v1/logs", foreign.SerializeToString())
    said = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert (answer.status_code, said.rejected_log_records) == (200, 1)
    assert "only log records with event names headway.*" in said.error_message
    answer = collector.post("/v1/traces", spans({**SPAN, "name": "GET /"}).SerializeToString())
    said = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert (answer.status_code, said.rejected_spans) == (200, 1)
    metrics = ExportMetricsServiceRequest()
    scope = metrics.resource_metrics.add().scope_metrics.add()
    scope.metrics.add(name="a").gauge.data_points.add(as_int=1)
    scope.metrics.add(name="b").sum.data_points.add(as_int=1)
    answer = collector.post("/v1/metrics", metrics.SerializeToString())
    said = ExportMetricsServiceResponse.FromString(answer.content).partial_success
    assert (answer.status_code, said.rejected_data_points) == (200, 2)
    assert collector.stored() == []
    assert collector.http.get("/api/v1/quarantine").json()["records"] == []
    assert collector.metrics()["headway_ingest_records_total"]["refused",] == 4


@pytest.mark.parametrize("path", ["/v1/logs", "/v1/traces", "/v1/metrics"])
def test_what_cannot_be_read_is_refused_for_good(collector: Collecting, path: str) -> None:
    for content, content_type, encoding, status in (
        (b"\xff\xff\xff", PROTOBUF, "", 400),
        (b"no gzip", PROTOBUF, "gzip", 400),
        (b"{", JSON, "", 400),
        (b"x", "text/plain", "", 415),
        (b"x", PROTOBUF, "br", 415),
    ):
        answer = collector.post(path, content, content_type=content_type, content_encoding=encoding)
        assert answer.status_code == status
        if content_type == PROTOBUF:
            assert answer.headers["content-type"] == PROTOBUF
            assert Status.FromString(answer.content).code == 3
        else:
            assert {"error", "next", "code", "message"} == set(answer.json())


def test_a_body_beyond_the_limit_is_413_however_it_is_packed(tmp_path: Path) -> None:
    with collecting(tmp_path, body_limit=10_000) as collector:
        bomb = gzip.compress(bytes(10**7))
        assert len(bomb) < 10_000
        for content, encoding in ((bomb, "gzip"), (bytes(20_000), ""), (bytes(10**6), "")):
            answer = collector.post("/v1/logs", content, content_encoding=encoding)
            assert answer.status_code == 413
            assert "Send smaller batches." in Status.FromString(answer.content).message
        large = json.dumps({"resourceLogs": [], "x": "y" * 2000}).encode()
        assert collector.post("/v1/logs", large, content_type=JSON).status_code == 413
        assert collector.service.intake.size == 0
        assert collector.metrics()["headway_ingest_requests_total"]["too_large",] == 4


def test_a_connection_is_kept_after_every_kind_of_answer(tmp_path: Path) -> None:
    with collecting(tmp_path, body_limit=10_000) as collector:
        address = urlsplit(collector.address)
        with closing(socket.create_connection((address.hostname, address.port))) as connection:
            for content, status in (
                (body([steps(1, 5)]), b"200"),
                (b"\xff", b"400"),
                (b"", b"200"),
            ):
                head = f"POST /v1/logs HTTP/1.1\r\nhost: localhost\r\ncontent-type: {PROTOBUF}\r\n"
                head += f"content-length: {len(content)}\r\n\r\n"
                connection.sendall(head.encode() + content)
                assert answered(connection).split(b" ")[1] == status


def answered(connection: socket.socket) -> bytes:
    """Read one answer off a connection."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(65536)
    head, _, content = found.partition(b"\r\n\r\n")
    (length,) = (
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    )
    while len(content) < length:
        content += connection.recv(65536)
    return head


def test_what_is_under_way_is_bounded_and_the_rest_is_asked_to_come_again(tmp_path: Path) -> None:
    content = body([record(1, Note(text="x" * 50_000))])
    with collecting(tmp_path, queue_limit=80_000) as collector, ExitStack() as stack:
        address = urlsplit(collector.address)
        slow = stack.enter_context(
            closing(socket.create_connection((address.hostname, address.port)))
        )
        head = f"POST /v1/logs HTTP/1.1\r\nhost: localhost\r\ncontent-type: {PROTOBUF}\r\n"
        slow.sendall(head.encode() + f"content-length: {len(content)}\r\n\r\n".encode())
        slow.sendall(content[:-1])
        wait_until(lambda: collector.service.intake.size == len(content) - 1)
        answer = collector.post("/v1/logs", content)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "on their way into the store" in Status.FromString(answer.content).message
        assert collector.service.intake.size == len(content) - 1
        slow.sendall(content[-1:])
        assert answered(slow).startswith(b"HTTP/1.1 200")
        assert collector.post("/v1/logs", content).status_code == 200
        assert collector.service.intake.size == 0
        assert collector.metrics()["headway_ingest_requests_total"]["busy",] == 1


def test_a_sender_that_goes_away_in_mid_body_leaves_nothing_behind(collector: Collecting) -> None:
    address = urlsplit(collector.address)
    with closing(socket.create_connection((address.hostname, address.port))) as connection:
        head = f"POST /v1/logs HTTP/1.1\r\nhost: localhost\r\ncontent-type: {PROTOBUF}\r\n"
        connection.sendall(head.encode() + b"content-length: 1000\r\n\r\n" + bytes(500))
        wait_until(lambda: collector.service.intake.size == 500)
    wait_until(lambda: collector.service.intake.requests["gone"] == 1)
    assert collector.service.intake.size == 0


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for another thread."""
    pause = threading.Event()
    for _ in range(int(WAIT / 0.01)):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not happen in time")


def test_the_lag_of_events_is_published(collector: Collecting) -> None:
    assert "headway_ingest_lag_seconds" not in collector.metrics()
    collector.post("/v1/logs", body([record(10, Note(text="x")), record(90, Note(text="y"))]))
    lags = collector.metrics()["headway_ingest_lag_seconds"]
    assert lags == {("0.5",): 50.0, ("0.99",): pytest.approx(89.2), ("1",): 90.0}


def test_every_counter_is_there_before_the_first_request(collector: Collecting) -> None:
    metrics = collector.metrics()
    for name in ("headway_ingest_records_total", "headway_ingest_requests_total"):
        assert set(metrics[name].values()) == {0}
    assert metrics["headway_ingest_bytes_in_flight"] == {(): 0}


def test_a_token_for_one_run_cannot_write_to_another() -> None:
    access = Access(scopes=frozenset(["ingest"]), name="ci", run="llama*")
    decoded = Decoded(
        parts=[steps(1, 5), steps(1, 5, run="gpt-1")], quarantined=(), size=1, num_refused=1
    )
    found = allowed(decoded, access)
    assert (found.envelopes, found.num_refused) == ([steps(1, 5)], 2)
    assert "'gpt'" in found.refusal


def test_of_many_records_alike_each_is_judged_by_the_name_that_it_gives_its_run() -> None:
    """Records in columns share their run; what `run.started` calls it may differ."""
    names = ["llama"] * 40 + ["mamba"] + ["llama"] * 40
    started = [record(number, RunStarted(run_name=name)) for number, name in enumerate(names, 1)]
    decoded = decode_logs(body(started), content_type=PROTOBUF, limit=2**20, received=0)
    found = allowed(decoded, Access(scopes=frozenset(["ingest"]), name="ci", run="llama*"))
    told = [envelope.event.run_name for envelope in expanded(found.parts)]
    assert (len(told), set(told)) == (80, {"llama"})
    assert (found.num_refused, "'mamba'" in found.refusal) == (1, True)


@pytest.mark.slow
def test_two_thousand_connections_are_served(collector: Collecting) -> None:
    address = urlsplit(collector.address)
    content = gzip.compress(body([record(1, Note(text="x"))]))
    head = (
        f"POST /v1/logs HTTP/1.1\r\nhost: localhost\r\ncontent-type: {PROTOBUF}\r\n"
        f"content-encoding: gzip\r\ncontent-length: {len(content)}\r\n\r\n"
    ).encode()
    with ExitStack() as stack:
        connections = [
            stack.enter_context(
                closing(socket.create_connection((address.hostname, address.port), WAIT))
            )
            for _ in range(2000)
        ]
        for _ in range(2):
            for connection in connections:
                connection.sendall(head + content)
            for connection in connections:
                assert answered(connection).startswith(b"HTTP/1.1 200")
    records = collector.metrics()["headway_ingest_records_total"]
    assert (records["stored",], records["duplicate",]) == (1, 3999)
