"""OTLP log requests as an agent sends them, built from envelopes without the agent."""

from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from headway import wire
from headway.events import Envelope


def request(envelopes: Iterable[Envelope]) -> ExportLogsServiceRequest:
    """Return a request with one resource per envelope."""
    message = ExportLogsServiceRequest()
    for envelope in envelopes:
        group = message.resource_logs.add()
        group.resource.attributes.extend(pairs(_prefixed(envelope, wire.PRODUCER_FIELDS)))
        record = group.scope_logs.add().log_records.add()
        record.event_name = wire.PREFIX + envelope.event.name
        record.time_unix_nano = envelope.wall
        record.attributes.extend(pairs(_prefixed(envelope, wire.RECORD_FIELDS)))
        record.attributes.extend(pairs(wire.to_fields(envelope.event)))
    return message


def body(envelopes: Iterable[Envelope]) -> bytes:
    """Return the request as protobuf."""
    return request(envelopes).SerializeToString()


def _prefixed(envelope: Envelope, names: Iterable[str]) -> dict[str, Any]:
    return {
        wire.PREFIX + name: value
        for name in names
        if (value := getattr(envelope, name)) is not None
    }


def pairs(values: Mapping[str, Any]) -> list[KeyValue]:
    """Return values as attributes."""
    return [KeyValue(key=name, value=_value(value)) for name, value in values.items()]


def _value(value: Any) -> AnyValue:
    found = AnyValue()
    match value:
        case bool():
            found.bool_value = value
        case int():
            found.int_value = value
        case float():
            found.double_value = value
        case str():
            found.string_value = value
        case bytes():
            found.bytes_value = value
        case tuple():
            found.array_value.values.extend(_value(item) for item in value)
            found.array_value.SetInParent()
        case _:
            found.kvlist_value.values.extend(pairs(value))
            found.kvlist_value.SetInParent()
    return found
