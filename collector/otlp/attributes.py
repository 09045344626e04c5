"""Attributes of many records at once, from their encoding to plain values.

Nine tenths of the time of reading a request go into its attributes, one Python object at a time.
So each distinct encoding is decoded once, by protobuf itself; and whole numbers, which all differ,
are told by their first bytes once one of their kind was seen, and decoded together with numpy.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from headway.collector.otlp.bodies import MalformedRequest
from headway.collector.otlp.messages import fields
from headway.redaction import masked_value
from headway.wire import PREFIX

MOST_NESTED = 64 * 1024
"""Bytes beyond which a list or a map is not built."""
LONGEST_TEXT = 64 * 1024
"""Characters that are kept of one text."""
LONGEST_NAME = 256
"""Characters of a name of a run, rank's attempt, node or phase, which become labels of metrics."""
_IN_ENVELOPE = ("run", "attempt", "node", "boot_id", "producer")
_NAMES = {*(PREFIX + name for name in _IN_ENVELOPE), "run_name", "phase"}
_LIST, _MAP = 5, 6
_MOST_PARTS = 16
_LONGEST_KEY = 100

Pair = tuple[str, Any]


class TooBig:
    """Stands for a list or map that is too big to be built; no declaration admits it."""

    def __repr__(self) -> str:
        """Say what it stands for."""
        return f"a list or map of more than {MOST_NESTED} bytes"


class TooLong:
    """Stands for a name that is too long for one; no declaration admits it."""

    def __repr__(self) -> str:
        """Say what it stands for."""
        return f"a name of more than {LONGEST_NAME} characters"


def decode(pairs: Iterable[bytes]) -> dict[bytes, Pair]:
    """Return key and value of each encoded `KeyValue`, without secrets and overlong texts.

    Raises:
        MalformedRequest: not the encoding of one.
    """
    found: dict[bytes, Pair] = {}
    heads: dict[bytes, tuple[str, int]] = {}
    numbers: list[bytes] = []
    encoded: list[bytes] = []
    keys: list[str] = []
    for pair in pairs:
        # tag, size and bytes of the key, tag and size of the value, tag of the number
        end = pair[1] + 5 if len(pair) > 1 else 0
        key, size = heads.get(pair[:end], ("", -1))
        if size == len(pair):
            numbers.append(pair)
            encoded.append(pair[end:])
            keys.append(key)
            continue
        key, value = found[pair] = _parsed(pair)
        if type(value) is int and len(key) <= _LONGEST_KEY:
            message = KeyValue(key=key, value=AnyValue(int_value=value))
            if message.SerializeToString() == pair:
                heads[pair[:end]] = (key, len(pair))
    values = _whole_numbers(encoded)
    if values is None:
        found.update((pair, _parsed(pair)) for pair in numbers)
    else:
        found.update(zip(numbers, zip(keys, values, strict=True), strict=True))
    return found


def plain(value: AnyValue) -> Any:
    """Return an attribute's value as Python's own types."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "kvlist_value":
        return {pair.key: plain(pair.value) for pair in value.kvlist_value.values}
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    return getattr(value, kind)


def _parsed(pair: bytes) -> Pair:
    try:
        if len(pair) > MOST_NESTED and _is_nested(pair):
            key = next((content for number, content in fields(pair) if number == 1), b"")
            return key.decode(), TooBig()
        message = KeyValue.FromString(pair)
    except (DecodeError, UnicodeDecodeError) as error:
        raise MalformedRequest(f"the body is no OTLP request: {error}") from error
    return message.key, kept(message.key, plain(message.value))


def kept(key: str, value: Any) -> Any:
    """Return what is kept of a value: no secret, no text that is too long."""
    if type(value) is int:
        return value
    if isinstance(value, str):
        if key in _NAMES and len(value) > LONGEST_NAME:
            return TooLong()
        value = value[:LONGEST_TEXT]
    return masked_value(key, value)


def _is_nested(pair: bytes) -> bool:
    """Whether a large pair is anything but one long text or some bytes."""
    parts = list(islice(fields(pair), _MOST_PARTS))
    inner = [
        number
        for part, content in parts
        if part == 2
        for number, _ in islice(fields(content), _MOST_PARTS)
    ]
    return max(len(parts), len(inner)) == _MOST_PARTS or _LIST in inner or _MAP in inner


def _whole_numbers(encoded: Sequence[bytes]) -> list[int] | None:
    """Decode varints as int64, or return None where one of them is not exactly one varint."""
    if not encoded:
        return []
    octets = np.frombuffer(b"".join(encoded), np.uint8)
    sizes = np.fromiter(map(len, encoded), np.int64, len(encoded))
    lasts = np.cumsum(sizes) - 1
    if not np.array_equal(np.flatnonzero(octets < 0x80), lasts):
        return None
    firsts = lasts - sizes + 1
    shifts = 7 * (np.arange(len(octets)) - np.repeat(firsts, sizes))
    parts = (octets & 0x7F).astype(np.uint64) << shifts.astype(np.uint64)
    return np.bitwise_or.reduceat(parts, firsts).view(np.int64).tolist()  # type: ignore[no-any-return]
