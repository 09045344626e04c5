"""Records as the columns of the table of events: the way of each of them into the database.

A row at a time would cost as much as all the rest of the ingest, so each column is built at once.
"""

import json
from collections.abc import Sequence
from itertools import chain
from json.encoder import encode_basestring_ascii
from typing import Any

import numpy as np
import pyarrow  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray

from headway import wire
from headway.blocks import Block, Part
from headway.events import EVENTS as EVENT_KINDS
from headway.events import Event, Steps
from headway.storage import step_packing
from headway.storage.rows import schema_of
from headway.storage.tables import EVENTS

_PACKED = "packed"
_SCHEMA = schema_of(EVENTS)
_SHARED = wire.PRODUCER_FIELDS
_MAY_DIFFER = ("attempt", "rank")
_NUMBERS = ("first_sequence", "wall", "monotonic")
_PREFIXES = {
    kind: tuple((name, f"{json.dumps(name)}: ") for name in wire.specs(kind) if name != _PACKED)
    for kind in EVENT_KINDS.values()
}
"""The fields of each kind of event, each with what stands before its value."""


def event_table(parts: Sequence[Part]) -> pyarrow.Table:
    """Return the rows of parts as `EVENTS` has them."""
    if not parts:
        return _SCHEMA.empty_table()
    counts = [part.count if isinstance(part, Block) else 1 for part in parts]
    columns: dict[str, Any] = {
        name: _repeated([_shared(part, name) for part in parts], name, counts) for name in _SHARED
    }
    for name in _MAY_DIFFER:
        columns[name] = _one_or_more(parts, name, counts)
    for name in _NUMBERS:
        columns[name] = np.concatenate([_numbers(part, name) for part in parts])
    columns["last_sequence"] = np.concatenate([_last(part) for part in parts])
    kinds = [part.kind if isinstance(part, Block) else type(part.event) for part in parts]
    columns["name"] = _repeated([kind.name for kind in kinds], "name", counts)
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Block):
            texts += _texts(part)
        else:
            texts.append(fields_json(part.event))
    columns["fields"] = texts
    if Steps in kinds:
        columns[_PACKED] = list(chain.from_iterable(map(_packed, parts)))
    else:
        columns[_PACKED] = pyarrow.nulls(sum(counts), pyarrow.binary())
    arrays = [
        column if isinstance(column, pyarrow.Array) else pyarrow.array(column, field.type)
        for field, column in ((field, columns[field.name]) for field in _SCHEMA)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=_SCHEMA)


def _shared(part: Part, name: str) -> Any:
    return part.producer[name] if isinstance(part, Block) else getattr(part, name)


def _repeated(values: list[Any], name: str, counts: list[int]) -> pyarrow.Array:
    """Return each value as often as the part that has it has records."""
    array = pyarrow.array(values, _SCHEMA.field(name).type)
    if len(values) == sum(counts):
        return array
    return array.take(pyarrow.array(np.repeat(np.arange(len(values)), counts)))


def _one_or_more(parts: Sequence[Part], name: str, counts: list[int]) -> Any:
    """Return a field that blocks mostly have in common."""
    if all(part.record[name].values is None for part in parts if isinstance(part, Block)):
        values = [
            part.record[name].constant if isinstance(part, Block) else getattr(part, name)
            for part in parts
        ]
        return _repeated(values, name, counts)
    found: list[Any] = []
    for part in parts:
        if isinstance(part, Block):
            found += part.record[name].of(part.count)
        else:
            found.append(getattr(part, name))
    return found


def _numbers(part: Part, name: str) -> NDArray[np.int64]:
    """Return whole numbers that nearly all records of a block have for themselves."""
    if not isinstance(part, Block):
        return np.array([getattr(part, name)], np.int64)
    column = part.record[name]
    if column.values is None:
        return np.full(part.count, column.constant, np.int64)
    return np.asarray(column.values).astype(np.int64)


def _last(part: Part) -> NDArray[np.int64]:
    if isinstance(part, Block):
        return _numbers(part, "first_sequence")
    return np.array([part.last_sequence], np.int64)


def _packed(part: Part) -> list[bytes | None]:
    if isinstance(part, Block):
        return [None] * part.count
    event = part.event
    return [step_packing.pack(event.packed) if isinstance(event, Steps) else None]


def _texts(block: Block) -> list[str]:
    """Return the fields of each record of a block as `fields_json` writes them."""
    varying = [name for name, column in block.fields.items() if column.values is not None]
    if not varying:
        return [fields_json(block.first().event)] * block.count
    left_out = wire.EMPTY_BY_DEFAULT[block.kind]
    texts: list[str] = [""] * block.count
    separator = "{"
    for name, prefix in _PREFIXES[block.kind]:
        column = block.fields[name]
        if column.values is None:
            if column.constant is None or (column.constant == () and name in left_out):
                continue
            said = separator + prefix + _word(column.constant)
            texts = [text + said for text in texts]
        else:
            head = separator + prefix
            words = map(_word, column.of(block.count))
            texts = [f"{text}{head}{word}" for text, word in zip(texts, words, strict=True)]
        separator = ", "
    return [text + "}" for text in texts]


def _word(value: Any) -> str:
    kind = type(value)
    if kind is int:
        return str(value)
    return encode_basestring_ascii(value) if kind is str else json.dumps(value)


def fields_json(event: Event) -> str:
    """Return the known fields of an event as `json.dumps` writes them, without packed bytes."""
    left_out = wire.EMPTY_BY_DEFAULT[type(event)]
    parts = [
        prefix + _word(value)
        for name, prefix in _PREFIXES[type(event)]
        if (value := getattr(event, name)) is not None and (value != () or name not in left_out)
    ]
    return "{" + ", ".join(parts) + "}"
