"""OTLP log requests become envelopes, or quarantined records with the reason.

A request is taken or refused as a whole only for its form; a record of Headway's that the contract
does not declare is quarantined, because the exporter ignores `partial_success` and would lose it.
Records of others are refused: they are counted and not kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from headway import wire
from headway.collector.otlp.attributes import decode
from headway.collector.otlp.bodies import JSON, MalformedRequest
from headway.collector.otlp.decoded import Decoded
from headway.collector.otlp.json_form import parsed
from headway.collector.otlp.messages import LeanLogRecord, LeanResource, fields, groups
from headway.collector.otlp.quarantine import Quarantine
from headway.collector.otlp.step_columns import in_records
from headway.events import Envelope, Steps

_MOST_ATTRIBUTES = 1000
_LARGE = 64 * 1024
_STEPS = wire.PREFIX + Steps.name
_RECORD_FIELDS = tuple((name, wire.PREFIX + name) for name in wire.RECORD_FIELDS)


def decode_logs(body: bytes, *, content_type: str, limit: int, received: int) -> Decoded:
    """Decode the inflated body of one request; `received` is the time of its arrival in UTC ns.

    Raises:
        MalformedRequest: the body is no OTLP log request.
        TooLarge: too many records, or too much that would have to be quarantined.
    """
    request = body
    if content_type == JSON:
        request = parsed(body, ExportLogsServiceRequest(), limit).SerializeToString()
    envelopes: list[Envelope] = []
    quarantine = Quarantine(received, limit)
    refused = 0
    for resource, records in groups(request):
        own, foreign = _own_records(records)
        refused += foreign
        if own:
            _read(resource, own, envelopes, quarantine)
    return Decoded(
        envelopes=envelopes,
        quarantined=quarantine.records,
        size=len(body),
        num_refused=refused,
        refusal=f"only log records with event names {wire.PREFIX}* are kept" if refused else "",
    )


def _own_records(records: Iterable[bytes]) -> tuple[list[tuple[bytes, Any, list[bytes]]], int]:
    """Return encoding, parsed form and attributes of Headway's records, and count the others."""
    own, foreign = [], 0
    try:
        for record in records:
            if len(record) > _LARGE and _num_fields(record) > _MOST_ATTRIBUTES:
                raise MalformedRequest(f"a log record has more than {_MOST_ATTRIBUTES} attributes")
            lean = LeanLogRecord.FromString(record)
            if lean.event_name.startswith(wire.PREFIX):
                own.append((record, lean, list(lean.attributes)))
            else:
                foreign += 1
    except DecodeError as error:
        raise MalformedRequest(f"the body is no OTLP log request: {error}") from error
    return own, foreign


def _num_fields(message: bytes) -> int:
    return sum(1 for _ in islice(fields(message), _MOST_ATTRIBUTES + 1))


def _read(
    encoded: bytes,
    records: Sequence[tuple[bytes, Any, list[bytes]]],
    envelopes: list[Envelope],
    quarantine: Quarantine,
) -> None:
    """Read the records of one resource."""
    try:
        of_resource = list(LeanResource.FromString(encoded).attributes)
    except DecodeError as error:
        raise MalformedRequest(f"the body is no OTLP log request: {error}") from error
    known = decode({*of_resource, *chain.from_iterable(pairs for _, _, pairs in records)})
    resource = dict(map(known.__getitem__, of_resource))
    producer = wire.Producer(
        {name: resource.get(wire.PREFIX + name) for name in wire.PRODUCER_FIELDS}
    )
    for record, lean, pairs in records:
        attributes = dict(map(known.__getitem__, pairs))
        try:
            envelopes.append(_envelope(producer, lean, attributes))
        except wire.WireError as error:
            quarantine.add(str(error), Resource, encoded, LogRecord, record)


def _envelope(producer: wire.Producer, lean: Any, attributes: dict[str, Any]) -> Envelope:
    name: str = lean.event_name
    values: Mapping[str, Any] = attributes
    if name == _STEPS:
        values = in_records(attributes)
    record = {field: attributes.get(key) for field, key in _RECORD_FIELDS}
    record["wall"] = lean.time_unix_nano
    return producer.build(record, name.removeprefix(wire.PREFIX), values)
