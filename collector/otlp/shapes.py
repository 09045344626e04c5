"""Records that differ in nothing but numbers and short texts, read together.

An agent's records are mostly of a few shapes: the same fields of the same sizes at the same
places. One record of a shape says where everything stands; the others are compared with it byte by
byte, all at once, and each value is read as a column. What fits no shape is read one by one.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.blocks import Column
from headway.collector.otlp.attributes import kept
from headway.collector.otlp.messages import Records

_FEWEST = 4
"""Records of one size from which on it pays to look for shapes."""
_MOST_SHAPES = 8
"""Shapes of one size that are looked for, and the largest record that may have one."""
_LARGEST = 2048
_TIME, _ATTRIBUTE, _NAME = 1, 6, 12
_KEY, _VALUE = 0x0A, 0x12
_STRING, _BOOL, _INT, _DOUBLE = 0x0A, 0x10, 0x18, 0x21
_SAME, _SAME_KIND, _ANY = 0xFF, 0x80, 0x00
"""What of a byte must be as in the first record: all of it, its highest bit, nothing."""


@dataclass(slots=True)
class _Shape:
    """Where things stand in the records of one shape."""

    template: NDArray[np.uint8]
    mask: NDArray[np.uint8]
    name: str = ""
    time: int = -1
    values: list[tuple[str, int, int, int]] = field(default_factory=list)
    """Key, kind, begin and end of each value."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Records of one shape: which ones, in order, their event name, times in ns, attributes."""

    positions: NDArray[np.int64]
    name: str
    times: NDArray[np.uint64]
    attributes: dict[str, Column]

    def part(self, begin: int, end: int) -> "Alike":
        """Return those that stand from `begin` to before `end` among them."""
        if end - begin == len(self.positions):
            return self
        attributes = {key: column.part(begin, end) for key, column in self.attributes.items()}
        return Alike(self.positions[begin:end], self.name, self.times[begin:end], attributes)


def alike(records: Sequence[tuple[int, Records]]) -> Iterator[Alike]:
    """Yield the records that can be read together; each one at most once.

    Beside records that stand side by side is the position of the first of them.
    """
    by_size: dict[int, list[tuple[int, Records]]] = defaultdict(list)
    for first, found in records:
        by_size[found.size].append((first, found))
    for size, listed in by_size.items():
        if size > _LARGEST or sum(found.count for _, found in listed) < _FEWEST:
            continue
        rows, positions = _together(size, listed)
        for _ in range(_MOST_SHAPES):
            if len(rows) < _FEWEST:
                break
            shape = _shape(rows[0].tobytes())
            if shape is None:
                rows, positions = rows[1:], positions[1:]
                continue
            fits = ~((rows ^ shape.template) & shape.mask).any(axis=1)
            if fits.all():
                yield _columns(shape, rows, positions)
                break
            yield _columns(shape, rows[fits], positions[fits])
            rows, positions = rows[~fits], positions[~fits]


def _together(
    size: int, listed: Sequence[tuple[int, Records]]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the records of one size as rows, and their positions."""
    alone = [(first, found) for first, found in listed if found.count == 1]
    joined = b"".join([found.one(0) for _, found in alone])
    rows = [np.frombuffer(joined, np.uint8).reshape(len(alone), size)]
    positions = [np.array([first for first, _ in alone], np.int64)]
    for first, found in listed:
        if found.count > 1:
            rows.append(found.rows())
            positions.append(np.arange(first, first + found.count))
    if len(listed) == 1:
        return rows[-1], positions[-1]
    place = np.concatenate(positions)
    order = np.argsort(place)
    return np.concatenate(rows)[order], place[order]


def _shape(record: bytes) -> _Shape | None:
    """Return the shape of a record, or None where it is not plain enough to have one."""
    template = np.frombuffer(record, np.uint8)
    shape = _Shape(template, np.full(len(record), _SAME, np.uint8))
    at, keys = 0, set()
    while at < len(record):
        tag, at = record[at], at + 1
        number, kind = tag >> 3, tag & 7
        if tag >= 0x80 or not number:
            return None
        if kind == 0:
            while at < len(record) and record[at] >= 0x80:
                at += 1
            at += 1
        elif kind == 5:
            shape.mask[at : at + 4] = _ANY
            at += 4
        elif kind == 1:
            if number == _TIME:
                shape.time = at
            shape.mask[at : at + 8] = _ANY
            at += 8
        elif kind == 2:
            size, at = _size(record, at)
            content = record[at : at + size]
            if len(content) < size:
                return None
            if number == _NAME and content.isascii():
                shape.name = content.decode()
            elif number == _NAME:
                return None
            elif number == _ATTRIBUTE:
                value = _value(content)
                if value is None or value[0] in keys:
                    return None
                key, form, begin, end, free = value
                keys.add(key)
                shape.values.append((key, form, at + begin, at + end))
                shape.mask[at + begin : at + end] = free
            at += size
        else:
            return None
    if at != len(record) or shape.time < 0:
        return None
    return shape


def _value(pair: bytes) -> tuple[str, int, int, int, int] | None:
    """Return key, kind, begin and end of a pair's value, and what of its bytes must be the same."""
    if len(pair) < 2 or pair[0] != _KEY or pair[1] >= 0x80:
        return None
    at = 2 + pair[1]
    key = pair[2:at]
    if not key.isascii() or len(pair) < at + 3 or pair[at] != _VALUE:
        return None
    size, at = _size(pair, at + 1)
    kind, begin = pair[at], at + 1
    if size != len(pair) - at or size < 1:
        return None
    rest = pair[begin:]
    if kind in (_INT, _BOOL):
        ends = [place for place, octet in enumerate(rest) if octet < 0x80]
        fits = ends == [len(rest) - 1] and len(rest) <= 10
        return (key.decode(), kind, begin, len(pair), _SAME_KIND) if fits else None
    if kind == _DOUBLE:
        return (key.decode(), kind, begin, len(pair), _ANY) if len(rest) == 8 else None
    if kind == _STRING and rest:
        length, start = _size(rest, 0)
        text = rest[start:]
        if text and length == len(text) and text.isascii():
            return key.decode(), kind, begin + start, len(pair), _SAME_KIND
    return None


def _size(data: bytes, at: int) -> tuple[int, int]:
    """Read a size of one or two bytes; a larger one is told as one that fits nothing."""
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1
    if at + 1 < len(data) and data[at + 1] < 0x80:
        return data[at] & 0x7F | data[at + 1] << 7, at + 2
    return _LARGEST * 8, at


def _columns(shape: _Shape, rows: NDArray[np.uint8], positions: NDArray[np.int64]) -> Alike:
    count = len(rows)
    found: dict[str, Column] = {}
    for key, kind, begin, end in shape.values:
        part = np.ascontiguousarray(rows[:, begin:end])
        if (part == shape.template[begin:end]).all():
            part = part[:1]
        values: list[Any] | NDArray[np.int64]
        if kind == _STRING:
            values = _texts(key, part)
        elif kind == _DOUBLE:
            values = part.view("<f8").ravel().tolist()
        elif kind == _BOOL:
            values = (_varints(part) != 0).tolist()
        else:
            values = _varints(part)
        if len(part) == 1 < count:
            constant = values[0] if isinstance(values, list) else int(values[0])
            found[key] = Column(constant, None)
        else:
            found[key] = Column(None, values)
    part = np.ascontiguousarray(rows[:, shape.time : shape.time + 8])
    return Alike(positions, shape.name, part.view("<u8").ravel(), found)


def _texts(key: str, part: NDArray[np.uint8]) -> list[Any]:
    """Return what is kept of the texts of an attribute, which all are as long."""
    width, text = part.shape[1], part.tobytes().decode("ascii")
    said = [text[at : at + width] for at in range(0, len(text), width)]
    known = {one: kept(key, one) for one in set(said)}
    return [known[one] for one in said]


def _varints(part: NDArray[np.uint8]) -> NDArray[np.int64]:
    found = np.zeros(len(part), np.uint64)
    for at in range(part.shape[1]):
        found |= (part[:, at].astype(np.uint64) & np.uint64(0x7F)) << np.uint64(7 * at)
    return found.view(np.int64)
