"""How envelopes become rows and back, and how many rows are written at once.

Rows go in through Arrow, which is two orders of magnitude faster than a statement per row.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow  # type: ignore[import-untyped]  # ships no types
from sqlalchemy import Connection, Row, Table

from headway import wire
from headway.events import Envelope
from headway.storage import step_packing

_ARROW = {
    "TEXT": pyarrow.string(),
    "BIGINT": pyarrow.int64(),
    "BLOB": pyarrow.binary(),
    "BOOLEAN": pyarrow.bool_(),
    "DOUBLE": pyarrow.float64(),
}
_BATCH = "batch"


def from_row(row: Row[Any]) -> Envelope:
    """Return the envelope of a row.

    Raises:
        WireError: it is no event of this version.
    """
    return from_values(dict(row._mapping))


class Rows:
    """Builds the envelopes of many rows, which share the texts that they have in common.

    Else each of them would have its own copy of the names of its run, its node and its producer.
    """

    def __init__(self) -> None:
        self._producers: dict[tuple[Any, ...], wire.Producer] = {}
        self._words: dict[Any, Any] = {}

    def envelope(self, row: Row[Any]) -> Envelope:
        """Return the envelope of a row.

        Raises:
            WireError: it is no event of this version.
        """
        values = dict(row._mapping)
        shared = tuple(values[name] for name in wire.PRODUCER_FIELDS)
        producer = self._producers.get(shared)
        if producer is None:
            named = dict(zip(wire.PRODUCER_FIELDS, shared, strict=True))
            producer = self._producers[shared] = wire.Producer(named)
        record = {name: values[name] for name in (*wire.RECORD_FIELDS, "wall")}
        record["attempt"] = self._words.setdefault(record["attempt"], record["attempt"])
        return producer.build(record, values["name"], _fields(values))


def from_values(values: Mapping[str, Any]) -> Envelope:
    """Return the envelope that the values of a row describe.

    Raises:
        WireError: they are no event of this version.
    """
    return wire.build(values, values["name"], _fields(values))


def _fields(values: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(values["fields"])
    if values["packed"] is not None:
        try:
            fields["packed"] = step_packing.unpack(bytes(values["packed"]))
        except ValueError as error:
            raise wire.WireError(str(error)) from error
    return fields


def schema_of(table: Table) -> pyarrow.Schema:
    """Return the columns of a table in Arrow's words."""
    return pyarrow.schema([(column.name, _ARROW[str(column.type)]) for column in table.columns])


def insert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows into a table."""
    insert_arrow(connection, table, pyarrow.Table.from_pylist(rows, schema=schema_of(table)))


def insert_arrow(connection: Connection, table: Table, rows: pyarrow.Table) -> None:
    """Write rows into a table that has their columns."""
    duckdb: Any = connection.connection.driver_connection
    duckdb.register(_BATCH, rows)
    try:
        names = ", ".join(column.name for column in table.columns)
        connection.exec_driver_sql(
            f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {_BATCH}"  # noqa: S608  # declared names only
        )
    finally:
        duckdb.unregister(_BATCH)
