"""The whole database as one consistent copy: another database file, or Parquet files and back.

All tables are read within one transaction, so that a copy taken while events arrive holds exactly
what was committed when it began.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

import duckdb
import pyarrow  # type: ignore[import-untyped]  # ships no types
import sqlalchemy
from pyarrow import parquet
from sqlalchemy import URL, Connection, Engine, Table, select
from sqlalchemy.exc import DBAPIError

from headway.storage.migrations import migrate, version, versions
from headway.storage.rows import insert_arrow, schema_of
from headway.storage.tables import METADATA
from headway.storage.views import describe

_ROWS_AT_ONCE = 50_000
_SCHEMA = b"headway.schema"
_UNFINISHED = ".part"
_FAILURES = (duckdb.Error, pyarrow.ArrowException, DBAPIError, OSError)
"""What the engine, the writer of Parquet or the disk may say."""


class CopyError(RuntimeError):
    """A copy that cannot be written or read; says which, why, and what to do next."""


def backup(engine: Engine, path: Path) -> int:
    """Write a copy of a database to a new file; return how many rows it holds.

    Raises:
        CopyError: the file exists already or cannot be written.
    """
    if path.exists():
        raise CopyError(f"{str(path)!r} exists already; name a new file")
    unfinished = path.with_name(path.name + _UNFINISHED)
    unfinished.unlink(missing_ok=True)
    target = sqlalchemy.create_engine(URL.create("duckdb", database=str(unfinished)))
    count = 0
    try:
        with engine.connect() as connection, target.begin() as copy:
            migrate(copy)
            for table in METADATA.sorted_tables:
                for rows in _batches(connection, table):
                    insert_arrow(copy, table, rows)
                    count += rows.num_rows
            describe(copy)
        target.dispose()
        unfinished.rename(path)
    except _FAILURES as error:
        target.dispose()
        unfinished.unlink(missing_ok=True)
        raise CopyError(f"the copy {str(path)!r} could not be written: {error}") from error
    return count


def export(engine: Engine, folder: Path) -> dict[str, int]:
    """Write every table to a Parquet file of a new folder; return the rows of each.

    Raises:
        CopyError: the folder exists already or cannot be written.
    """
    if folder.exists():
        raise CopyError(f"{str(folder)!r} exists already; name a new folder")
    unfinished = folder.with_name(f"{folder.name}{_UNFINISHED}-{os.getpid()}")
    counts: dict[str, int] = {}
    try:
        unfinished.mkdir(parents=True)
        with engine.connect() as connection:
            mark = {_SCHEMA: (version(connection) or "").encode()}
            for table in METADATA.sorted_tables:
                counts[table.name] = 0
                schema = schema_of(table).with_metadata(mark)
                with parquet.ParquetWriter(
                    unfinished / f"{table.name}.parquet", schema, compression="zstd"
                ) as writer:
                    for rows in _batches(connection, table):
                        writer.write_table(rows.replace_schema_metadata(mark))
                        counts[table.name] += rows.num_rows
        unfinished.rename(folder)
    except _FAILURES as error:
        rmtree(unfinished, ignore_errors=True)
        raise CopyError(f"the export {str(folder)!r} could not be written: {error}") from error
    return counts


@contextmanager
def exported(folder: Path) -> Iterator[dict[Table, parquet.ParquetFile]]:
    """Give the Parquet files of an exported folder by table.

    Raises:
        CopyError: a file is missing, is none of an export, or of another schema.
    """
    found: dict[Table, parquet.ParquetFile] = {}
    try:
        for table in METADATA.sorted_tables:
            path = folder / f"{table.name}.parquet"
            try:
                found[table] = parquet.ParquetFile(path)
            except (OSError, pyarrow.ArrowInvalid) as error:
                raise CopyError(
                    f"{str(path)!r} cannot be read ({error}); name a folder that "
                    "`headway storage export` wrote"
                ) from error
            said = (found[table].schema_arrow.metadata or {}).get(_SCHEMA, b"").decode()
            if said != versions()[-1]:
                raise CopyError(
                    f"{str(path)!r} is of the schema {said!r}, and this version reads "
                    f"{versions()[-1]}; export again with this version"
                )
        yield found
    finally:
        for file in found.values():
            file.close()


def rows_of(file: parquet.ParquetFile) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of a Parquet file, some at a time."""
    for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
        yield batch.to_pylist()


def _batches(connection: Connection, table: Table) -> Iterator[pyarrow.Table]:
    """Yield the rows of a table as its columns are declared."""
    statement = str(select(table).compile(dialect=connection.dialect))
    schema = schema_of(table)
    # Begins the transaction, if it is the first table.
    connection.execute(select(1))
    driver: Any = connection.connection.driver_connection
    reader = driver.sql(statement).to_arrow_reader(_ROWS_AT_ONCE)
    for batch in reader:
        yield pyarrow.Table.from_batches([batch]).cast(schema)
