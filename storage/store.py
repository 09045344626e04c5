"""The collector's database: events in, events out, each sequence number once.

One process owns the file. One thread appends; any thread may read. Records are written through
Arrow, which is two orders of magnitude faster than row by row; everything else is SQLAlchemy.
"""

import hashlib
import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast

import duckdb
import sqlalchemy
from sqlalchemy import (
    URL,
    ColumnClause,
    Connection,
    Engine,
    and_,
    column,
    delete,
    false,
    or_,
    select,
    table,
    tuple_,
    update,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from headway import wire
from headway.blocks import Part, expanded
from headway.events import Envelope
from headway.sequences import SequenceSet, Source
from headway.storage import copying
from headway.storage.acknowledged import Journal
from headway.storage.engine_memory import ENGINE, trim
from headway.storage.event_columns import event_table
from headway.storage.keeping import Keeping
from headway.storage.migrations import (
    FIRST,
    VERSION_TABLE,
    SchemaError,
    migrate,
    version,
    versions,
)
from headway.storage.reading import Reading
from headway.storage.rows import Rows, from_row, insert, insert_arrow
from headway.storage.tables import EVENTS, INTERVALS, QUARANTINE
from headway.storage.unseen import unseen
from headway.storage.views import describe

_LOG = logging.getLogger(__name__)

_ROWS_AT_ONCE = 10_000
_TRIM_EVERY = 10
"""Commits between two looks at what the engine keeps in memory."""


class StoreError(RuntimeError):
    """A database file that cannot be used; says which, why, and what to do next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A received record that is no event of this version, and why."""

    received: int
    reason: str
    raw: str

    @property
    def digest(self) -> str:
        """Return what tells one raw form from another."""
        return hashlib.sha256(self.raw.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What one transaction stored; counts are records, so 100 steps count 100."""

    parts: Sequence[Part]
    num_stored: int
    num_duplicate: int
    num_quarantined: int

    @property
    def envelopes(self) -> list[Envelope]:
        """Return what was stored one by one."""
        return list(expanded(self.parts))


class EventStore:
    """Events, interval sets and quarantine in one DuckDB file."""

    def __init__(self, engine: Engine, journal: Journal | None) -> None:
        """Take over an engine whose tables exist; see `open` and `read`."""
        self._engine = engine
        self._journal = journal
        self._stored = self._read_intervals()
        self._unsure: tuple[Sequence[Part], Mapping[Source, SequenceSet]] | None = None
        self._untold: list[Part] = []
        self._opening = uuid.uuid4().hex[:12]
        self._num_commits = 0
        self.reading = Reading(engine)
        self.keeping = Keeping(engine)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or create a database file; one of an older schema is migrated.

        Raises:
            StoreError: held by another process, no database, of a newer version, or not writable.
        """
        engine = sqlalchemy.create_engine(
            URL.create("duckdb", database=str(path)), connect_args={"config": dict(ENGINE)}
        )
        try:
            with engine.begin() as connection:
                migrate(connection)
                describe(connection)
            return cls(engine, Journal(path))
        except SchemaError as error:
            engine.dispose()
            raise StoreError(f"cannot use the database {str(path)!r}: {error}") from error
        except DBAPIError as error:
            engine.dispose()
            raise _explained(path, error) from error

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open a database that no collector holds; nothing is written, also not beside it.

        Raises:
            StoreError: held by another process, no database of this version, or not readable.
        """
        engine = sqlalchemy.create_engine(
            URL.create("duckdb", database=str(path)),
            connect_args={"config": dict(ENGINE), "read_only": True},
        )
        try:
            with engine.connect() as connection:
                found, newest = version(connection), versions()[-1]
                if found is None and sqlalchemy.inspect(connection).has_table(EVENTS.name):
                    found = FIRST
            if found == newest:
                return cls(engine, None)
        except DBAPIError as error:
            engine.dispose()
            raise _explained(path, error) from error
        engine.dispose()
        if found is None:
            raise StoreError(f"the database {str(path)!r} holds nothing that a collector wrote")
        raise StoreError(
            f"the database {str(path)!r} has the schema {found}, and this version reads {newest}; "
            "start a collector on it once, which migrates it"
        )

    @property
    def version(self) -> str:
        """Return what changes whenever something was stored, and with every opening."""
        return f"{self._opening}-{self._num_commits}"

    def close(self) -> None:
        """Write everything to the file and let go of it."""
        self._engine.dispose()
        if self._journal is not None:
            self._journal.close()

    def settle(self) -> None:
        """Take the log into the file and forget what was missed: it has been told.

        Raises:
            StoreError: it could not be done, for want of room for example.
        """
        journal = self._writing()
        try:
            with self._engine.connect() as connection:
                connection.exec_driver_sql("CHECKPOINT")
            journal.forget()
        except (DBAPIError, OSError) as error:
            raise StoreError(f"the database's log could not be taken in: {error}") from error

    def append(self, received: Iterable[Part], quarantined: Sequence[Quarantined] = ()) -> Appended:
        """Store what is not stored yet, in one transaction; return only when it is durable.

        Raises:
            StoreError: nothing was stored as far as is known, the disk is full for example.
        """
        journal = self._writing()
        self._clear_up()
        new = unseen(received, self._stored)
        kept, changed = new.parts, new.known
        try:
            with self._engine.begin() as connection:
                if kept:
                    insert_arrow(connection, EVENTS, event_table(kept))
                    _replace_intervals(connection, changed)
                if quarantined:
                    _insert_quarantined(connection, quarantined)
        except DBAPIError as error:
            # The engine fails too where the commit is durable and only its checkpoint failed.
            self._unsure = (kept, changed)
            self._engine.dispose()
            if not kept or not self._clear_up():
                words = f"{new.num_records} events could not be stored: {error.orig}"
                raise StoreError(words) from error
        else:
            self._untold += kept
        parts, self._untold = self._untold, []
        journal.note(parts)
        self._stored.update(changed)
        self._num_commits += 1
        if self._num_commits % _TRIM_EVERY == 0:
            self._trim()
        return Appended(
            parts=parts,
            num_stored=new.num_records,
            num_duplicate=new.num_received - new.num_records,
            num_quarantined=len(quarantined),
        )

    def _trim(self) -> None:
        """Let the engine give back memory, unless something runs that may need it."""
        pool = cast(QueuePool, self._engine.pool)
        if pool.checkedout() or not self.reading.sql.idle:
            return
        try:
            with self.reading.connection() as connection:
                trim(connection)
        except (duckdb.Error, DBAPIError) as error:
            # What was appended is durable all the same.
            _LOG.warning("the engine's memory could not be trimmed: %s", error)

    def try_writing(self) -> None:
        """Write a little that changes nothing.

        Raises:
            StoreError: it is not possible now.
        """
        number: ColumnClause[str] = column("version_num")
        schema = table(VERSION_TABLE, number)
        try:
            with self._engine.begin() as connection:
                connection.execute(update(schema).values(version_num=number))
        except DBAPIError as error:
            self._engine.dispose()
            raise StoreError(f"nothing can be written: {error.orig}") from error

    def know(self, intervals: Mapping[Source, SequenceSet]) -> None:
        """Note sequence numbers as stored, by source: their records came and expired elsewhere.

        Raises:
            StoreError: nothing was noted.
        """
        changed: dict[Source, SequenceSet] = {}
        for source, ranges in intervals.items():
            changed[source] = SequenceSet(self._stored.get(source, ()))
            for first, last in ranges:
                changed[source].add(first, last)
        try:
            with self._engine.begin() as connection:
                _replace_intervals(connection, changed)
        except DBAPIError as error:
            raise StoreError(f"sequence numbers could not be noted: {error.orig}") from error
        self._stored.update(changed)

    def backup(self, path: Path) -> int:
        """Write a consistent copy to a new file, also while events arrive; return its rows.

        Raises:
            CopyError: the file exists already or cannot be written.
        """
        return copying.backup(self._engine, path)

    def export(self, folder: Path) -> dict[str, int]:
        """Write every table as Parquet into a new folder; return the rows of each.

        Raises:
            CopyError: the folder exists already or cannot be written.
        """
        return copying.export(self._engine, folder)

    def envelopes(self, run: str | None = None) -> Iterator[Envelope]:
        """Yield the stored events, or those of one run, in the order in which they were stored."""
        statement = select(EVENTS)
        if run is not None:
            statement = statement.where(EVENTS.c.run == run)
        rows = Rows()
        with self._engine.connect() as connection:
            result = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(statement)
            for row in result:
                try:
                    yield rows.envelope(row)
                except wire.WireError as error:
                    _LOG.warning("a stored record is left out: %s", error)

    def of_node(
        self, node: str, names: Sequence[str], spans: Sequence[tuple[int, int]]
    ) -> list[Envelope]:
        """Return what a node told of no run within spans of time in ns, in order of time.

        `names` are wire names of events; the times are those of the node's clock, ends included.
        """
        time = EVENTS.c.anchor + EVENTS.c.monotonic
        statement = (
            select(EVENTS)
            .where(EVENTS.c.node == node, EVENTS.c.run.is_(None), EVENTS.c.name.in_(names))
            .where(or_(false(), *(time.between(start, end) for start, end in spans)))
            .order_by(time, EVENTS.c.producer, EVENTS.c.first_sequence)
        )
        with self._engine.connect() as connection:
            return [from_row(row) for row in connection.execute(statement)]

    def of_nodes(self, name: str, spans: Mapping[str, tuple[int, int]]) -> list[Envelope]:
        """Return what nodes told of no run, each within its span of time in ns, in order of time.

        `name` is the wire name of an event; the times are as in `of_node`.
        """
        if not spans:
            return []
        time = EVENTS.c.anchor + EVENTS.c.monotonic
        first = min(since for since, _ in spans.values())
        last = max(until for _, until in spans.values())
        statement = (
            select(EVENTS)
            .where(EVENTS.c.name == name, EVENTS.c.run.is_(None), EVENTS.c.node.in_(spans))
            .where(time.between(first, last))
            .order_by(time, EVENTS.c.producer, EVENTS.c.first_sequence)
        )
        with self._engine.connect() as connection:
            return [
                from_row(row)
                for row in connection.execute(statement)
                if spans[row.node][0] <= row.anchor + row.monotonic <= spans[row.node][1]
            ]

    def quarantined(self, limit: int) -> list[Quarantined]:
        """Return the newest quarantined records."""
        statement = select(QUARANTINE).order_by(QUARANTINE.c.received.desc(), QUARANTINE.c.digest)
        with self._engine.connect() as connection:
            return [
                Quarantined(received=row.received, reason=row.reason, raw=row.raw)
                for row in connection.execute(statement.limit(limit))
            ]

    @property
    def num_gaps(self) -> int:
        """Return the number of ranges that are missing between stored ones, over all producers."""
        return sum(map(len, self.gaps().values()))

    def gaps(self) -> Mapping[Source, Sequence[tuple[int, int]]]:
        """Return the ranges that are missing between stored ones, by run and producer."""
        known = {source: numbers.gaps() for source, numbers in list(self._stored.items())}
        return {source: ranges for source, ranges in known.items() if ranges}

    def _writing(self) -> Journal:
        if self._journal is None:
            raise StoreError("the database was opened to be read; nothing can be stored in it")
        return self._journal

    def _clear_up(self) -> bool:
        """Find out whether the transaction that failed last is stored after all.

        Raises:
            StoreError: the database cannot say it now.
        """
        if self._unsure is None:
            return False
        kept, changed = self._unsure
        try:
            stored = self._read_intervals()
        except DBAPIError as error:
            self._engine.dispose()
            raise StoreError(f"the database cannot be read now: {error.orig}") from error
        self._unsure = None
        self._stored = stored
        if any(list(stored.get(source, ())) != list(known) for source, known in changed.items()):
            return False
        self._untold += kept
        return True

    def _read_intervals(self) -> dict[Source, SequenceSet]:
        statement = select(INTERVALS).order_by(INTERVALS.c.producer, INTERVALS.c.first_sequence)
        found: dict[Source, SequenceSet] = {}
        with self._engine.connect() as connection:
            for row in connection.execute(statement):
                known = found.setdefault((row.run, row.producer), SequenceSet())
                known.add(row.first_sequence, row.last_sequence)
        return found


def _replace_intervals(connection: Connection, changed: Mapping[Source, SequenceSet]) -> None:
    of_none = [producer for run, producer in changed if run is None]
    of_runs = [source for source in changed if source[0] is not None]
    source = tuple_(INTERVALS.c.run, INTERVALS.c.producer)
    if of_none:
        same = and_(INTERVALS.c.run.is_(None), INTERVALS.c.producer.in_(of_none))
        connection.execute(delete(INTERVALS).where(same))
    if of_runs:
        connection.execute(delete(INTERVALS).where(source.in_(of_runs)))
    insert(
        connection,
        INTERVALS,
        [
            {"run": run, "producer": producer, "first_sequence": first, "last_sequence": last}
            for (run, producer), known in changed.items()
            for first, last in known
        ],
    )


def _insert_quarantined(connection: Connection, quarantined: Sequence[Quarantined]) -> None:
    new = {item.digest: item for item in quarantined}
    statement = select(QUARANTINE.c.digest).where(QUARANTINE.c.digest.in_(new))
    for digest in connection.scalars(statement).all():
        del new[digest]
    if new:
        rows = [
            {"digest": digest, "received": item.received, "reason": item.reason, "raw": item.raw}
            for digest, item in new.items()
        ]
        insert(connection, QUARANTINE, rows)


def _explained(path: Path, error: DBAPIError) -> StoreError:
    words = str(error.orig)
    if "Could not set lock" in words:
        return StoreError(
            f"the database {str(path)!r} is held by another process; stop that collector, "
            f"or choose another file with HEADWAY_COLLECTOR_DATABASE ({words})"
        )
    return StoreError(
        f"cannot open the database {str(path)!r}; set the file aside or choose another one with "
        f"HEADWAY_COLLECTOR_DATABASE ({words})"
    )
