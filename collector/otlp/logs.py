"""OTLP log requests become envelopes, or quarantined records with the reason.

A request is taken or refused as a whole only for its form; a record of Headway's that the contract
does not declare is quarantined, because the exporter ignores `partial_success` and would lose it.
Records of others are refused: they are counted and not kept.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
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
from headway.collector.otlp.shapes import Alike, alike
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
    quarantine = Quarantine(received, limit)
    producers: list[tuple[int, bytes]] = []
    records: list[bytes] = []
    for resource, found in groups(request):
        producers.append((len(records), resource))
        records += found
    try:
        envelopes, refused = _read(producers, records, quarantine)
    except DecodeError as error:
        raise MalformedRequest(f"the body is no OTLP log request: {error}") from error
    return Decoded(
        envelopes=envelopes,
        quarantined=quarantine.records,
        size=len(body),
        num_refused=refused,
        refusal=f"only log records with event names {wire.PREFIX}* are kept" if refused else "",
    )


def _read(
    resources: Sequence[tuple[int, bytes]], records: Sequence[bytes], quarantine: Quarantine
) -> tuple[list[Envelope], int]:
    """Read all records, and count those that are not Headway's.

    A resource is that of the records from its first one on, which stands beside it.
    """
    firsts = [first for first, _ in resources]
    producers = [_producer(resource) for _, resource in resources]
    found: list[Envelope | None] = [None] * len(records)
    left = set(range(len(records)))
    refused = 0
    for group in alike(records):
        if not group.name.startswith(wire.PREFIX):
            refused += len(group.positions)
            left.difference_update(group.positions)
            continue
        begin = 0
        while begin < len(group.positions):
            number = bisect_right(firsts, group.positions[begin]) - 1
            following = firsts[number + 1] if number + 1 < len(firsts) else len(records)
            end = bisect_left(group.positions, following, begin)
            own = group.part(begin, end)
            built = _built(producers[number], own)
            if built is not None:
                left.difference_update(own.positions)
                for position, envelope in zip(own.positions, built, strict=True):
                    found[position] = envelope
            begin = end
    one_by_one = [(position, _lean(records[position])) for position in sorted(left)]
    own_records = [
        (position, lean, list(lean.attributes))
        for position, lean in one_by_one
        if lean.event_name.startswith(wire.PREFIX)
    ]
    known = decode(set(chain.from_iterable(pairs for _, _, pairs in own_records)))
    for position, lean, pairs in own_records:
        number = bisect_right(firsts, position) - 1
        try:
            attributes = dict(map(known.__getitem__, pairs))
            found[position] = _envelope(producers[number], lean, attributes)
        except wire.WireError as error:
            resource = resources[number][1]
            quarantine.add(str(error), Resource, resource, LogRecord, records[position])
    refused += len(one_by_one) - len(own_records)
    return [envelope for envelope in found if envelope is not None], refused


def _built(producer: wire.Producer, group: Alike) -> list[Envelope] | None:
    columns = {field: group.attributes.get(key) for field, key in _RECORD_FIELDS}
    own = {field: column for field, column in columns.items() if column is not None}
    own["wall"] = wire.Column(None, group.times)
    name = group.name.removeprefix(wire.PREFIX)
    return producer.build_alike(own, name, group.attributes, len(group.positions))


def _producer(resource: bytes) -> wire.Producer:
    pairs = list(LeanResource.FromString(resource).attributes)
    known = decode(pairs)
    attributes = dict(map(known.__getitem__, pairs))
    return wire.Producer(
        {name: attributes.get(wire.PREFIX + name) for name in wire.PRODUCER_FIELDS}
    )


def _lean(record: bytes) -> Any:
    if len(record) > _LARGE and _num_fields(record) > _MOST_ATTRIBUTES:
        raise MalformedRequest(f"a log record has more than {_MOST_ATTRIBUTES} attributes")
    return LeanLogRecord.FromString(record)


def _num_fields(message: bytes) -> int:
    return sum(1 for _ in islice(fields(message), _MOST_ATTRIBUTES + 1))


def _envelope(producer: wire.Producer, lean: Any, attributes: dict[str, Any]) -> Envelope:
    name: str = lean.event_name
    values: Mapping[str, Any] = attributes
    if name == _STEPS:
        values = in_records(attributes)
    record = {field: attributes.get(key) for field, key in _RECORD_FIELDS}
    record["wall"] = lean.time_unix_nano
    return producer.build(record, name.removeprefix(wire.PREFIX), values)
