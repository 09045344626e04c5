"""Envelopes as the columns of the table of events: the way of every record into the database.

A row at a time would cost as much as all the rest of the ingest, so each column is built at once.
"""

import json
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii
from typing import Any

import pyarrow  # type: ignore[import-untyped]  # ships no types

from headway import wire
from headway.events import EVENTS as EVENT_KINDS
from headway.events import Envelope, Event, Steps
from headway.storage import step_packing
from headway.storage.rows import schema_of
from headway.storage.tables import EVENTS

_PACKED = "packed"
_ENVELOPE_FIELDS = tuple(wire.specs(Envelope))
_PREFIXES = {
    kind: tuple((name, f"{json.dumps(name)}: ") for name in wire.specs(kind) if name != _PACKED)
    for kind in EVENT_KINDS.values()
}
"""The fields of each kind of event, each with what stands before its value."""


def event_table(envelopes: Sequence[Envelope]) -> pyarrow.Table:
    """Return the rows of envelopes as `EVENTS` has them."""
    events = [envelope.event for envelope in envelopes]
    columns: dict[str, list[Any]] = {
        name: [getattr(envelope, name) for envelope in envelopes] for name in _ENVELOPE_FIELDS
    }
    columns["name"] = [event.name for event in events]
    columns["fields"] = [fields_json(event) for event in events]
    columns[_PACKED] = [
        step_packing.pack(event.packed) if isinstance(event, Steps) else None for event in events
    ]
    schema = schema_of(EVENTS)
    arrays = [pyarrow.array(columns[field.name], field.type) for field in schema]
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def fields_json(event: Event) -> str:
    """Return the known fields of an event as `json.dumps` writes them, without packed bytes."""
    parts = []
    for name, prefix in _PREFIXES[type(event)]:
        value = getattr(event, name)
        if value is None:
            continue
        kind = type(value)
        if kind is int:
            parts.append(f"{prefix}{value}")
        elif kind is str:
            parts.append(prefix + encode_basestring_ascii(value))
        else:
            parts.append(prefix + json.dumps(value))
    return "{" + ", ".join(parts) + "}"
