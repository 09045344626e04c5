"""Protobuf messages of OTLP, taken apart no further than needed.

A message of two bytes becomes an object of a hundred, and a body may hold millions of them. So the
outer messages are walked without being built, under a limit, and of an inner one only the fields
that Headway reads are parsed; its nested messages stay bytes, which protobuf cannot tell apart.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf import (  # type: ignore[import-untyped]  # ships no types
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)
from numpy.typing import NDArray

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
    at = 0
    while at < len(data):
        number, begin, at = _field(data, at)
        if number:
            yield number, data[begin:at]


def _field(data: bytes, at: int) -> tuple[int, int, int]:
    """Return number, begin and end of a field's content; number 0 where it has no length."""
    tag, begin = (data[at], at + 1) if data[at] < 0x80 else _varint(data, at)
    kind, size = tag & 7, 0
    if kind == _LENGTH:
        size, begin = _varint(data, begin)
    elif kind == _VARINT:
        _, begin = _varint(data, begin)
    elif kind in _FIXED:
        size = _FIXED[kind]
    else:
        raise MalformedRequest(f"the body is no OTLP request: wire type {kind}")
    if tag < 8:
        raise MalformedRequest("the body is no OTLP request: a field without a number")
    if size > len(data) - begin:
        raise MalformedRequest("the body is no OTLP request: a message ends early")
    return tag >> 3 if kind == _LENGTH else 0, begin, begin + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for byte in data[at : at + _MOST_VARINT]:
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise MalformedRequest("the body is no OTLP request: a number without an end")


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one size as they stand side by side in a request, each behind the same head."""

    data: bytes
    count: int
    head: int
    size: int

    def rows(self) -> NDArray[np.uint8]:
        """Return their bytes: shape (count, size)."""
        framed = np.frombuffer(self.data, np.uint8).reshape(self.count, self.head + self.size)
        return framed[:, self.head :]

    def __iter__(self) -> Iterator[bytes]:
        """Yield them one by one."""
        return map(self.one, range(self.count))

    def one(self, position: int) -> bytes:
        """Return the bytes of one of them."""
        begin = position * (self.head + self.size) + self.head
        return self.data[begin : begin + self.size]


def groups(request: bytes) -> Iterator[tuple[bytes, Iterator[Records]]]:
    """Yield each resource of an export request, as bytes, with its log records or spans.

    The request's resource groups are its field 1; their resource is field 1, their scopes field 2;
    a scope's records are its field 2: the same in `ExportLogsServiceRequest` and
    `ExportTraceServiceRequest` (opentelemetry-proto 1.x).

    Raises:
        MalformedRequest: no such message.
        TooLarge: more than `MOST_MESSAGES` of them.
    """
    left = MOST_MESSAGES

    def count(number: int) -> None:
        nonlocal left
        left -= number
        if left < 0:
            raise TooLarge(f"the request holds more than {MOST_MESSAGES} records")

    def counted(data: bytes) -> Iterator[tuple[int, bytes]]:
        for number, content in fields(data):
            count(1)
            yield number, content

    def records(scopes: list[bytes]) -> Iterator[Records]:
        for scope in scopes:
            for number, found in _side_by_side(scope):
                count(found.count)
                if number == 2:
                    yield found

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


def _side_by_side(data: bytes) -> Iterator[tuple[int, Records]]:
    """Yield number and contents of the length-delimited fields of a message, in order.

    Neighbours of the same number and size come together.
    """
    at = 0
    while at < len(data):
        number, begin, end = _field(data, at)
        if number:
            framed, head = end - at, data[at:begin]
            count = _repeats(data, at, head, framed)
            end = at + count * framed
            yield number, Records(data[at:end], count, len(head), framed - len(head))
        at = end


def _repeats(data: bytes, at: int, head: bytes, framed: int) -> int:
    """Return how often fields with the same head stand side by side, the first one included."""
    count, more = 1, 1
    while data.startswith(head, at + count * framed):
        # As many again at a time: looking far ahead must not cost more than what is found there.
        fit = min(more, (len(data) - at) // framed - count)
        if fit < 1:
            break
        rows = np.frombuffer(data, np.uint8, fit * framed, at + count * framed)
        same = (rows.reshape(fit, framed)[:, : len(head)] == np.frombuffer(head, np.uint8)).all(1)
        if not same.all():
            return count + int(same.argmin())
        count, more = count + fit, 2 * more
    return count


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
