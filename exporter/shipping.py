"""Hands envelopes to the collector over OTLP/HTTP and says truthfully what became of them.

The SDK's exporter is called directly and asked once per call: its own retries would block the
run loop for seconds, it takes a redirect for success, and its result hides the status. So its
HTTP session is ours: it remembers the answer and turns everything but 2xx into a failure.
"""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # ships no types
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.resources import Resource

from headway import wire
from headway.events import Envelope, Steps, StepsSummary
from headway.exporter import hardware_conventions as conventions
from headway.redaction import masked
from headway.settings import SettingError

_log = logging.getLogger(__name__)

REQUEST_TIME = 10.0
"""Seconds for which one request may wait for its answer."""
REFUSED_FOLDER = "refused"
"""Name of the folder for what the collector cannot read."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Hosts that no proxy reaches."""
_TOO_LARGE, _UNREADABLE = 413, 400
_PROTOBUF, _JSON = "application/x-protobuf", "application/json"


class NotTakenError(Exception):
    """The collector did not take a batch; sending it again later may work."""

    def __init__(self, sentence: str, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipment:
    """What became of some records: acknowledged by the collector, or set aside as refused."""

    acknowledged: int = 0
    refused: int = 0

    def __add__(self, other: "Shipment") -> "Shipment":
        return Shipment(
            acknowledged=self.acknowledged + other.acknowledged,
            refused=self.refused + other.refused,
        )


class _AnswerError(Exception):
    """What the collector said, where it was not "yes"."""

    def __init__(self, status: int | None, words: str, retry_after: float | None = None) -> None:
        super().__init__(words)
        self.status = status
        self.retry_after = retry_after


class _OneTry(requests.Session):
    """A session that asks once and keeps the answer of the last request."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: _AnswerError | None = None

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        self.answer = None
        try:
            response = super().send(request, **options)
        except requests.RequestException as error:
            self.answer = _AnswerError(None, type(error).__name__)
            raise self.answer from error
        if not 200 <= response.status_code < 300:
            self.answer = _AnswerError(
                response.status_code,
                _said(response),
                _seconds(response.headers.get("retry-after")),
            )
            raise self.answer
        return response


class Shipper:
    """Exports envelopes to one collector; `refused` is the folder for what it cannot read."""

    def __init__(
        self, *, endpoint: str, token: str | None, refused: Path, ca_file: Path | None = None
    ) -> None:
        """Prepare the exporter; nothing is sent yet. `ca_file` vouches for a collector with TLS.

        Raises:
            SettingError: an endpoint that is no address of HTTP.
        """
        address = urlsplit(endpoint)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise SettingError(
                f"endpoint must be an address like http://collector:8750, got {masked(endpoint)!r}"
            )
        # The SDK logs each failed attempt; the agent says once that the collector is away.
        logging.getLogger(OTLPLogExporter.__module__).setLevel(logging.CRITICAL)
        self._address = endpoint.rstrip("/")
        self.endpoint = masked(self._address)
        """Address of the collector as it may be shown."""
        self.refused = refused
        self._session = _OneTry()
        # A proxy of the environment cannot reach this machine's loopback.
        self._session.trust_env = address.hostname not in LOOPBACK
        self._exporter = OTLPLogExporter(
            endpoint=f"{self._address}/v1/logs",
            headers={} if token is None else {"authorization": f"Bearer {token}"},
            certificate_file=None if ca_file is None else str(ca_file),
            timeout=REQUEST_TIME,
            compression=Compression.Gzip,
            session=self._session,
            max_request_size=0,  # the collector decides, with 413
        )

    def ship(self, envelopes: Sequence[Envelope]) -> Shipment:
        """Send envelopes until each is acknowledged or set aside.

        Raises:
            NotTakenError: the collector is away or too busy; some of them may have arrived.
        """
        if not envelopes:
            return Shipment()
        answer = self._export(envelopes)
        if answer is None:
            return Shipment(acknowledged=num_records(envelopes))
        if answer.status == _TOO_LARGE:
            halves = split(envelopes)
            if halves is not None:
                return self.ship(halves[0]) + self.ship(halves[1])
        elif answer.status == _UNREADABLE:
            producers = by_producer(envelopes)
            if len(producers) > 1:
                return sum((self.ship(part) for part in producers), Shipment())
        else:
            raise NotTakenError(_sentence(self.endpoint, answer), answer.retry_after)
        return self._set_aside(envelopes, answer)

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # the SDK's omission

    def _export(self, envelopes: Sequence[Envelope]) -> _AnswerError | None:
        self._session.answer = None
        if self._exporter.export(to_otlp(envelopes)) is LogRecordExportResult.SUCCESS:
            return None
        if self._session.answer is None:
            return _AnswerError(_UNREADABLE, "the SDK could not encode it")
        return self._session.answer

    def _set_aside(self, envelopes: Sequence[Envelope], answer: _AnswerError) -> Shipment:
        first = envelopes[0]
        path = self.refused / f"{time.time_ns()}-{first.producer}.jsonl"
        lines = [json.dumps(wire.to_json(envelope)) + "\n" for envelope in envelopes]
        try:
            self.refused.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(lines), encoding="ascii")
        except OSError as error:
            raise NotTakenError(f"cannot keep refused records in {path}: {error}") from error
        _log.error(
            "the collector at %s refused %d records of producer %s (%s: %s); they are kept in %s; "
            "send them again with `headway import spool` once it can read them",
            self.endpoint,
            num_records(envelopes),
            first.producer,
            answer.status,
            answer,
            path,
        )
        return Shipment(refused=num_records(envelopes))


def num_records(envelopes: Sequence[Envelope]) -> int:
    """Count the records that envelopes carry."""
    return sum(item.last_sequence - item.first_sequence + 1 for item in envelopes)


def by_producer(envelopes: Sequence[Envelope]) -> list[list[Envelope]]:
    """Group envelopes by producer, keeping their order."""
    ordered = sorted(envelopes, key=lambda envelope: envelope.producer)
    return [list(group) for _, group in groupby(ordered, key=lambda envelope: envelope.producer)]


def split(envelopes: Sequence[Envelope]) -> tuple[list[Envelope], list[Envelope]] | None:
    """Halve a batch, a single envelope of steps by its steps; `None` where it is one record.

    Example: one envelope with the steps 1-1000 becomes one with 1-500 and one with 501-1000.
    """
    if len(envelopes) > 1:
        middle = len(envelopes) // 2
        return list(envelopes[:middle]), list(envelopes[middle:])
    (envelope,) = envelopes
    first, last = envelope.first_sequence, envelope.last_sequence
    if first == last or not isinstance(envelope.event, Steps | StepsSummary):
        return None
    cut = (first + last) // 2
    return [wire.trim(envelope, first, cut)], [wire.trim(envelope, cut + 1, last)]


def to_otlp(envelopes: Sequence[Envelope]) -> list[ReadableLogRecord]:
    """Return the SDK's form: one resource per producer, one log record per envelope."""
    resources: dict[tuple[Any, ...], Resource] = {}
    records = []
    for envelope in envelopes:
        identity = tuple(getattr(envelope, name) for name in wire.PRODUCER_FIELDS)
        if identity not in resources:
            known = _prefixed(envelope, wire.PRODUCER_FIELDS)
            resources[identity] = Resource({"service.name": "headway", **known})
        event = envelope.event
        if isinstance(event, Steps):
            event = wire.in_columns(event)
        attributes = {
            **_prefixed(envelope, wire.RECORD_FIELDS),
            **{name: _text(value) for name, value in wire.to_fields(event).items()},
            **conventions.attributes(event),
        }
        record = LogRecord(
            timestamp=envelope.wall,
            observed_timestamp=envelope.wall,
            event_name=wire.PREFIX + envelope.event.name,
            attributes=attributes,
        )
        records.append(ReadableLogRecord(record, resources[identity]))
    return records


def _prefixed(envelope: Envelope, names: Sequence[str]) -> dict[str, Any]:
    values = {name: getattr(envelope, name) for name in names}
    return {wire.PREFIX + name: _text(value) for name, value in values.items() if value is not None}


def _text(value: Any) -> Any:
    # Protobuf takes no lone surrogates, which odd file names bring into messages.
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, tuple):
        return tuple(_text(item) for item in value)
    if isinstance(value, Mapping):
        return {_text(key): _text(item) for key, item in value.items()}
    return value


def _said(response: requests.Response) -> str:
    """Return what an answer says: OTLP's status, JSON as the collector's, or any text."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    words = "" if kind == _PROTOBUF else response.text
    with suppress(AttributeError, DecodeError, KeyError, ValueError):
        if kind == _PROTOBUF:
            words = Status.FromString(response.content).message
        elif kind == _JSON:
            said = response.json()
            words = str(said.get("message") or f"{said['error']} {said['next']}")
    return " ".join(words.split())[:200] or response.reason


def _seconds(header: str | None) -> float | None:
    try:
        return None if header is None else max(float(header), 0.0)
    except ValueError:
        return None  # a date: the back-off decides


def _sentence(endpoint: str, answer: _AnswerError) -> str:
    if answer.status is None:
        return (
            f"no collector answers at {endpoint} ({answer}); start one with `headway collect` "
            "or name another with --endpoint or HEADWAY_ENDPOINT"
        )
    if answer.status in (401, 403):
        return (
            f"the collector at {endpoint} does not accept this token ({answer.status}: {answer}); "
            "set HEADWAY_TOKEN to one with the scope ingest"
        )
    if answer.status in (429, 503):
        return f"the collector at {endpoint} is behind ({answer.status}: {answer})"
    return (
        f"{endpoint} answered {answer.status} ({answer}); check that it is a Headway collector "
        "and see its log"
    )
