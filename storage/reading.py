"""What is read from the stored events beside ledgers: events, step records, strangers' SQL.

Every question has a time limit, after which it is interrupted.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow  # type: ignore[import-untyped]  # ships no types
from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Engine,
    Select,
    cast,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.exc import DBAPIError

from headway import step_blocks
from headway.events import Steps
from headway.storage import step_packing
from headway.storage.sql_session import SECONDS, SqlSession, limited
from headway.storage.tables import EVENTS
from headway.storage.views import readable

Place = tuple[int, str, int]
"""Where an event stands: its time by its node's clock in ns, its producer, its sequence."""

_STEP = np.dtype(
    [
        ("start", "<i8"),
        ("duration", "<i8"),
        ("data_wait", "<i8"),
        ("loss", "<f8"),
        ("samples", "<i8"),
    ]
)
_time = EVENTS.c.anchor + EVENTS.c.monotonic
_PLACE = (_time, EVENTS.c.producer, EVENTS.c.first_sequence)
_ROW: ColumnElement[int] = literal_column(f"{EVENTS.name}.rowid")
"""Where the engine keeps a row; good for one statement."""


class TooSlow(RuntimeError):  # noqa: N818  # the condition reads as a name
    """A question took longer than it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events are meant; None is any. Times in UTC ns by the node's clock, end excluded."""

    run: str | None = None
    name: str | None = None
    node: str | None = None
    rank: int | None = None
    since: int | None = None
    until: int | None = None


class Reading:
    """Reads a database that the store has opened; any thread may ask."""

    def __init__(self, engine: Engine) -> None:
        """Read through an engine of a database of this version's schema."""
        self._engine = engine
        self.sql = SqlSession(self.connection, tuple(readable()))

    def events(self, wanted: EventFilter, after: Place | None, limit: int) -> pyarrow.Table:
        """Return events in order of time, those after a place; without their packed steps.

        Raises:
            TooSlow: it took longer than it may.
        """
        shown = (
            _time.label("time"),
            *(column for column in EVENTS.columns if column.name != EVENTS.c.packed.name),
        )
        meant = (
            select(_ROW)
            .select_from(EVENTS)
            .where(*_conditions(wanted))
            .order_by(*_PLACE)
            .limit(limit)
            .correlate(None)
        )
        if after is not None:
            meant = meant.where(tuple_(*_PLACE) > tuple_(*after))
        # The engine would read every column of all rows to sort them: it sorts their numbers alone.
        statement = select(*shown).where(_ROW.in_(meant)).order_by(*_PLACE)
        return self._table(statement)

    def steps(
        self, run: str, first: int, last: int, rank: int | None, after: Place | None, limit: int
    ) -> tuple[pyarrow.Table, Place | None]:
        """Return the completed steps `first` to `last` of a run with what was measured of each.

        Whole stored records, in order of time, until they hold `limit` steps; and the place of the
        last one where there are more. Steps that were executed twice are there twice.

        Raises:
            TooSlow: it took longer than it may.
        """
        number = EVENTS.c.last_sequence - EVENTS.c.first_sequence + 1
        begin = _first_step()
        statement = (
            select(
                *(column.label(f"place{index}") for index, column in enumerate(_PLACE)),
                EVENTS.c.anchor,
                EVENTS.c.attempt,
                EVENTS.c.rank,
                EVENTS.c.node,
                begin.label("first_step"),
                EVENTS.c.packed,
            )
            .where(EVENTS.c.run == run, EVENTS.c.name == Steps.name, EVENTS.c.packed.is_not(None))
            .where(begin <= last, begin + number > first)
            .order_by(*_PLACE)
            .limit(limit)
        )
        if rank is not None:
            statement = statement.where(EVENTS.c.rank == rank)
        if after is not None:
            statement = statement.where(tuple_(*_PLACE) > tuple_(*after))
        return _unpacked(self._rows(statement), first, last, limit)

    def _rows(self, statement: Select[Any]) -> Sequence[Mapping[str, Any]]:
        with self._limited() as connection:
            return [dict(row) for row in connection.execute(statement).mappings()]

    def _table(self, statement: Select[Any]) -> pyarrow.Table:
        schema = pyarrow.schema(
            [
                (
                    column.name,
                    pyarrow.string() if column.type.python_type is str else pyarrow.int64(),
                )
                for column in statement.selected_columns
            ]
        )
        return pyarrow.Table.from_pylist(self._rows(statement), schema=schema)

    @contextmanager
    def _limited(self) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            try:
                with limited(driver):
                    yield connection
            except DBAPIError as error:
                if isinstance(error.orig, duckdb.InterruptException):
                    raise TooSlow(f"the question took longer than {SECONDS:g} s") from error
                raise

    def connection(self) -> duckdb.DuckDBPyConnection:
        """Return a connection of its own to the same database."""
        with self._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            found: duckdb.DuckDBPyConnection = driver.duplicate()
            return found


def _conditions(wanted: EventFilter) -> Iterator[ColumnElement[bool]]:
    for name in ("run", "name", "node", "rank"):
        value = getattr(wanted, name)
        if value is not None:
            yield EVENTS.c[name] == value
    if wanted.since is not None:
        yield _time >= wanted.since
    if wanted.until is not None:
        yield _time < wanted.until


def _first_step() -> Any:
    return cast(EVENTS.c.fields, JSON)["first_step"].as_integer()


def _unpacked(
    rows: Sequence[Mapping[str, Any]], first: int, last: int, limit: int
) -> tuple[pyarrow.Table, Place | None]:
    """Return the steps of records, and the place of the last record if there may be more."""
    parts: list[pyarrow.Table] = []
    num_steps = 0
    for row in rows:
        part = _steps_of(row, first, last)
        parts.append(part)
        num_steps += part.num_rows
        if num_steps >= limit:
            break
    table = pyarrow.concat_tables([_NO_STEPS, *parts])
    more = len(parts) < len(rows) or len(rows) == limit
    return table, _place(rows[len(parts) - 1]) if more else None


def _place(row: Mapping[str, Any]) -> Place:
    return row["place0"], row["place1"], row["place2"]


def _steps_of(row: Mapping[str, Any], first: int, last: int) -> pyarrow.Table:
    packed = np.frombuffer(step_packing.unpack(row["packed"]), _STEP)
    numbers = np.arange(row["first_step"], row["first_step"] + len(packed))
    kept = (numbers >= first) & (numbers <= last)
    packed = packed[kept]
    samples = packed["samples"]
    same = {
        name: pyarrow.repeat(pyarrow.scalar(row[name], kind), len(packed))
        for name, kind in _OF_RECORD.items()
    }
    return pyarrow.table(
        {
            "step": pyarrow.array(numbers[kept]),
            "start": pyarrow.array(packed["start"] + row["anchor"]),
            "duration": pyarrow.array(packed["duration"]),
            "data_wait": pyarrow.array(packed["data_wait"]),
            "loss": pyarrow.array(packed["loss"], from_pandas=True),  # NaN is unknown
            "samples": pyarrow.array(samples, mask=samples == step_blocks.UNKNOWN_SAMPLES),
            **same,
        },
        schema=_NO_STEPS.schema,
    )


_OF_RECORD = {"attempt": pyarrow.string(), "rank": pyarrow.int64(), "node": pyarrow.string()}
_NO_STEPS = pyarrow.schema(
    [
        *((name, pyarrow.int64()) for name in ("step", "start", "duration", "data_wait")),
        ("loss", pyarrow.float64()),
        ("samples", pyarrow.int64()),
        *_OF_RECORD.items(),
    ]
).empty_table()
