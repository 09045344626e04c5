"""OTLP log requests become envelopes, or quarantined records with the reason.

A request is taken or refused as a whole only for its form; a record that the contract does not
declare is quarantined, because the exporter ignores `partial_success` and would lose it.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]  # ships no types
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # as above
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from headway import wire
from headway.collector.step_columns import in_records
from headway.events import Envelope
from headway.storage.store import Quarantined

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


class MalformedRequest(ValueError):  # noqa: N818  # the condition reads as a name
    """A body that is no OTLP request; sending it again cannot help."""


class TooLarge(ValueError):  # noqa: N818  # the condition reads as a name
    """A body that inflates beyond the limit; smaller batches help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What one request holds, and its inflated size."""

    envelopes: Sequence[Envelope]
    quarantined: Sequence[Quarantined]
    size: int


def decode(body: bytes, *, content_type: str, encoding: str, limit: int, received: int) -> Decoded:
    """Decode one request body.

    Raises:
        MalformedRequest: unknown content type or encoding, or a body that is not what it claims.
        TooLarge: more than `limit` bytes after inflating.
    """
    body = _inflated(body, encoding, limit)
    request = _parsed(body, content_type)
    envelopes: list[Envelope] = []
    quarantined: list[Quarantined] = []
    for group in request.resource_logs:
        resource = _prefixed(_attributes(group.resource.attributes), wire.PRODUCER_FIELDS)
        for scope in group.scope_logs:
            for record in scope.log_records:
                try:
                    envelopes.append(_envelope(resource, record))
                except wire.WireError as error:
                    raw = _raw(group.resource, record)
                    quarantined.append(Quarantined(received=received, reason=str(error), raw=raw))
    return Decoded(envelopes=envelopes, quarantined=quarantined, size=len(body))


def response(decoded: Decoded, content_type: str) -> bytes:
    """Encode the answer to a stored request in the form in which it came."""
    answer = ExportLogsServiceResponse()
    if decoded.quarantined:
        answer.partial_success.rejected_log_records = len(decoded.quarantined)
        answer.partial_success.error_message = f"quarantined: {decoded.quarantined[0].reason}"
    if content_type == JSON:
        return json.dumps(json_format.MessageToDict(answer)).encode()
    return bytes(answer.SerializeToString())


def _inflated(body: bytes, encoding: str, limit: int) -> bytes:
    if encoding == "gzip":
        inflater = zlib.decompressobj(_GZIP_WINDOW)
        try:
            body = inflater.decompress(body, limit + 1)
        except zlib.error as error:
            raise MalformedRequest(f"the body is no gzip stream: {error}") from error
        if len(body) <= limit and not inflater.eof:
            raise MalformedRequest("the gzip stream ends early")
    elif encoding not in ("", "identity"):
        raise MalformedRequest(f"unknown content encoding {encoding!r}; known: gzip, identity")
    if len(body) > limit:
        raise TooLarge(f"the body holds more than {limit} bytes")
    return body


def _parsed(body: bytes, content_type: str) -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    try:
        if content_type == PROTOBUF:
            request.ParseFromString(body)
        elif content_type == JSON:
            json_format.Parse(body, request, ignore_unknown_fields=True)
        else:
            raise MalformedRequest(
                f"unknown content type {content_type!r}; known: {PROTOBUF}, {JSON}"
            )
    except (DecodeError, json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedRequest(f"the body is no OTLP log request: {error}") from error
    return request


def _envelope(resource: Mapping[str, Any], record: LogRecord) -> Envelope:
    if not record.event_name.startswith(wire.PREFIX):
        raise wire.WireError(f"event name {record.event_name!r} is not in {wire.PREFIX}*")
    attributes = _attributes(record.attributes)
    values = {
        **resource,
        **_prefixed(attributes, wire.RECORD_FIELDS),
        "wall": record.time_unix_nano,
    }
    return wire.build(values, record.event_name.removeprefix(wire.PREFIX), in_records(attributes))


def _prefixed(attributes: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: attributes.get(wire.PREFIX + name) for name in names}


def _attributes(pairs: Sequence[KeyValue]) -> dict[str, Any]:
    return {pair.key: _plain(pair.value) for pair in pairs}


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    return getattr(value, kind)


def _raw(resource: Resource, record: LogRecord) -> str:
    found = {
        "resource": json_format.MessageToDict(resource),
        "record": json_format.MessageToDict(record),
    }
    return json.dumps(found, sort_keys=True)
