"""OTLP log requests become envelopes, or quarantined records with the reason.

A request is taken or refused as a whole only for its form; a record of Headway's that the contract
does not declare is quarantined, because the exporter ignores `partial_success` and would lose it.
Records of others are refused: they are counted and not kept.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from headway import wire
from headway.blocks import Block, Column, Part
from headway.collector.otlp.attributes import decode
from headway.collector.otlp.bodies import JSON, MalformedRequest
from headway.collector.otlp.decoded import Decoded
from headway.collector.otlp.json_form import parsed
from headway.collector.otlp.messages import LeanLogRecord, LeanResource, Records, fields, groups
from headway.collector.otlp.quarantine import Quarantine
from headway.collector.otlp.shapes import Alike, alike
from headway.collector.otlp.step_columns import in_records
from headway.events import Envelope, RunStarted, Steps

_MOST_ATTRIBUTES = 1000
_LARGE = 64 * 1024
_FEWEST = 16
"""Records from which on they stay together: fewer cost less one by one.

Each `run.started` is asked by itself whether its sender may write it."""
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
    resources: list[tuple[int, bytes]] = []
    records: list[tuple[int, Records]] = []
    count = 0
    for resource, listed in groups(request):
        resources.append((count, resource))
        for found in listed:
            records.append((count, found))
            count += found.count
    try:
        parts, refused = _read(resources, records, count, quarantine)
    except DecodeError as error:
        raise MalformedRequest(f"the body is no OTLP log request: {error}") from error
    return Decoded(
        parts=parts,
        quarantined=quarantine.records,
        size=len(body),
        num_refused=refused,
        refusal=f"only log records with event names {wire.PREFIX}* are kept" if refused else "",
    )


def _read(
    resources: Sequence[tuple[int, bytes]],
    records: Sequence[tuple[int, Records]],
    count: int,
    quarantine: Quarantine,
) -> tuple[list[Part], int]:
    """Read all records, `count` of them, and count those that are not Headway's.

    A resource is that of the records from its first one on, whose position stands beside it.
    """
    firsts = [first for first, _ in resources]
    producers = [_producer(resource) for _, resource in resources]
    found: list[tuple[int, Part]] = []
    left = np.ones(count, np.bool_)
    refused = 0
    for group in alike(records):
        if not group.name.startswith(wire.PREFIX):
            refused += len(group.positions)
            left[group.positions] = False
            continue
        for number, own in _by_resource(group, firsts):
            built = _built(producers[number], own)
            if built is not None:
                left[own.positions] = False
                if built.count < _FEWEST or built.kind is RunStarted:
                    found += zip(own.positions.tolist(), built.envelopes(), strict=True)
                else:
                    found.append((int(own.positions[0]), built))
    one_by_one = [(at, record, _lean(record)) for at, record in _ones(records, left)]
    own_records = [
        (at, record, lean, list(lean.attributes))
        for at, record, lean in one_by_one
        if lean.event_name.startswith(wire.PREFIX)
    ]
    known = decode(set(chain.from_iterable(pairs for *_, pairs in own_records)))
    for at, record, lean, pairs in own_records:
        number = bisect_right(firsts, at) - 1
        try:
            attributes = dict(map(known.__getitem__, pairs))
            found.append((at, _envelope(producers[number], lean, attributes)))
        except wire.WireError as error:
            quarantine.add(str(error), Resource, resources[number][1], LogRecord, record)
    refused += len(one_by_one) - len(own_records)
    found.sort(key=itemgetter(0))
    return [part for _, part in found], refused


def _by_resource(group: Alike, firsts: Sequence[int]) -> Iterator[tuple[int, Alike]]:
    """Yield the records of a group by the resource that they belong to, by its number."""
    begin = 0
    while begin < len(group.positions):
        number = bisect_right(firsts, int(group.positions[begin])) - 1
        end = len(group.positions)
        if number + 1 < len(firsts):
            end = int(np.searchsorted(group.positions, firsts[number + 1]))
        yield number, group.part(begin, end)
        begin = end


def _ones(
    records: Sequence[tuple[int, Records]], left: NDArray[np.bool_]
) -> Iterator[tuple[int, bytes]]:
    """Yield position and bytes of each record that is left."""
    firsts = [first for first, _ in records]
    for position in np.flatnonzero(left).tolist():
        first, found = records[bisect_right(firsts, position) - 1]
        yield position, found.one(position - first)


def _built(producer: wire.Producer, group: Alike) -> Block | None:
    columns = {field: group.attributes.get(key) for field, key in _RECORD_FIELDS}
    own = {field: column for field, column in columns.items() if column is not None}
    own["wall"] = Column(None, group.times)
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
