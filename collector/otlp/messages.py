"""Protobuf messages of OTLP, taken apart no further than needed.

A message of two bytes becomes an object of a hundred, and a body may hold millions of them. So the
outer messages are walked without being built, under a limit, and of an inner one only the fields
that Headway reads are parsed; its nested messages stay bytes, which protobuf cannot tell apart.
"""

from collections.abc import Iterator
from typing import Any

from google.protobuf import (  # type: ignore[import-untyped]  # ships no types
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

from headway.collector.otlp.bodies import MalformedRequest, TooLarge

MOST_MESSAGES = 100_000
"""Most records, scopes and resources in one request."""
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_MOST_VARINT = 10


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each length-delimited field of a message, in order.

    Raises:
        MalformedRequest: no protobuf message.
    """
    at, end = 0, len(data)
    while at < end:
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _LENGTH:
            size, at = _varint(data, at)
            if size > end - at:
                raise MalformedRequest("the body is no OTLP request: a message ends early")
            yield tag >> 3, data[at : at + size]
            at += size
        elif kind == _VARINT:
            _, at = _varint(data, at)
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            raise MalformedRequest(f"the body is no OTLP request: wire type {kind}")
        if tag < 8:
            raise MalformedRequest("the body is no OTLP request: a field without a number")
    if at > end:
        raise MalformedRequest("the body is no OTLP request: a message ends early")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for byte in data[at : at + _MOST_VARINT]:
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise MalformedRequest("the body is no OTLP request: a number without an end")


def groups(request: bytes) -> Iterator[tuple[bytes, Iterator[bytes]]]:
    """Yield each resource of an export request, as bytes, with its log records or spans.

    The request's resource groups are its field 1; their resource is field 1, their scopes field 2;
    a scope's records are its field 2: the same in `ExportLogsServiceRequest` and
    `ExportTraceServiceRequest` (opentelemetry-proto 1.x).

    Raises:
        MalformedRequest: no such message.
        TooLarge: more than `MOST_MESSAGES` of them.
    """
    left = MOST_MESSAGES

    def counted(data: bytes) -> Iterator[tuple[int, bytes]]:
        nonlocal left
        for number, content in fields(data):
            left -= 1
            if left < 0:
                raise TooLarge(f"the request holds more than {MOST_MESSAGES} records")
            yield number, content

    def records(scopes: list[bytes]) -> Iterator[bytes]:
        for scope in scopes:
            for number, content in counted(scope):
                if number == 2:
                    yield content

    for number, group in counted(request):
        if number != 1:
            continue
        resource, scopes = [], []
        for part, content in counted(group):
            if part == 1:
                resource.append(content)
            elif part == 2:
                scopes.append(content)
        # Two encodings of one message, one after the other, are the encoding of both merged.
        yield b"".join(resource), records(scopes)


def _declare() -> tuple[Any, Any, Any]:
    field = descriptor_pb2.FieldDescriptorProto
    single, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    file = descriptor_pb2.FileDescriptorProto(
        name="headway_otlp.proto", package="headway", syntax="proto3"
    )
    for name, declared in {
        "LogRecord": (
            ("time_unix_nano", 1, field.TYPE_FIXED64, single),
            ("attributes", 6, field.TYPE_BYTES, many),
            ("event_name", 12, field.TYPE_STRING, single),
        ),
        "Span": (("name", 5, field.TYPE_STRING, single),),
        "Resource": (("attributes", 1, field.TYPE_BYTES, many),),
    }.items():
        message = file.message_type.add(name=name)
        for title, number, kind, label in declared:
            message.field.add(name=title, number=number, type=kind, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    record, span, resource = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"headway.{name}"))
        for name in ("LogRecord", "Span", "Resource")
    )
    return record, span, resource


LeanLogRecord, LeanSpan, LeanResource = _declare()
"""Wire-compatible parts of OTLP's messages; what is not declared is skipped."""
