"""A real HTTP server that takes OTLP logs and answers as a test tells it, its time included."""

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from headway import wire
from headway.events import Envelope
from headway.sequences import SequenceSet

Status = int | tuple[int, dict[str, str]] | tuple[int, dict[str, str], bytes]


class OtlpEndpoint:
    """Decodes each request and asks `answer(envelopes)` for the status."""

    def __init__(self) -> None:
        self.answer: Callable[[list[Envelope]], Status] = lambda envelopes: 200
        self.accepted: list[Envelope] = []
        self.requests: list[list[Envelope]] = []
        self.headers: list[dict[str, str]] = []
        self.address = ""
        self.clock: Callable[[], int] = time.time_ns

    @property
    def arrived(self) -> list[Envelope]:
        """Return what was accepted without what was sent again, as a collector stores it.

        A request whose answer took too long on a busy machine is sent once more.
        """
        known: dict[str, SequenceSet] = {}
        found = []
        for envelope in list(self.accepted):
            seen = known.setdefault(envelope.producer, SequenceSet())
            for first, last in seen.missing(envelope.first_sequence, envelope.last_sequence):
                seen.add(first, last)
                found.append(wire.trim(envelope, first, last))
        return found

    def take(self, headers: dict[str, str], body: bytes) -> Status:
        """Decode one request, and keep it where the answer is 200."""
        message = ExportLogsServiceRequest()
        message.ParseFromString(gzip.decompress(body))
        envelopes = decode(message)
        self.headers.append(headers)
        self.requests.append(envelopes)
        status = self.answer(envelopes)
        if status == 200:
            self.accepted += envelopes
        return status


@contextmanager
def otlp_endpoint(port: int = 0) -> Iterator[OtlpEndpoint]:
    """Serve on loopback until the block ends."""
    endpoint = OtlpEndpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the base class's name
            body = self.rfile.read(int(self.headers["content-length"]))
            status = endpoint.take({k.lower(): v for k, v in self.headers.items()}, body)
            code, headers, *rest = status if isinstance(status, tuple) else (status, {})
            body = rest[0] if rest else b""
            self.send_response(code)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:  # the base class's name
            found = self.path == "/api/v1/clock"
            body = json.dumps({"time": endpoint.clock()}).encode() if found else b""
            self.send_response(200 if found else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        endpoint.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield endpoint
        finally:
            server.shutdown()
            thread.join()


def decode(message: ExportLogsServiceRequest) -> list[Envelope]:
    """Build the envelopes of one OTLP request through the contract's own checks."""
    envelopes = []
    for resource in message.resource_logs:
        shared = {item.key: _value(item.value) for item in resource.resource.attributes}
        assert shared.pop("service.name") == "headway"
        for scope in resource.scope_logs:
            for record in scope.log_records:
                values = {item.key: _value(item.value) for item in record.attributes}
                own = {name: values.pop(wire.PREFIX + name, None) for name in wire.RECORD_FIELDS}
                common = {name.removeprefix(wire.PREFIX): value for name, value in shared.items()}
                envelope = {**common, **own, "wall": record.time_unix_nano}
                name = record.event_name.removeprefix(wire.PREFIX)
                envelopes.append(wire.build(envelope, name, values))
    return envelopes


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(_value(item) for item in value.array_value.values)
    if kind == "kvlist_value":
        return {item.key: _value(item.value) for item in value.kvlist_value.values}
    return getattr(value, kind)
