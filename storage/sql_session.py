"""Guarded SQL: one read-only statement with a limit of time, rows and memory, two at a time.

The statement runs on a connection of its own beside the writer's. What a query may take is
bounded from outside: a watch interrupts it when its time is over or the process has grown, and the
process's address space has a roof meanwhile, since one call of a function hears no interrupt.
"""

import resource
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow  # type: ignore[import-untyped]  # ships no types

from headway.storage.sql_guard import SqlRefused, checked

MOST_ROWS = 100_000
"""Most rows of an answer."""
AT_ONCE = 2
"""Queries that run at the same time."""
SECONDS = 10.0
"""Longest time of a query."""

_MOST_BYTES = 256 * 1024**2
_MOST_GROWTH = 2 * 1024**3
"""How much the process may grow, in bytes, while a query runs."""
_ROWS_AT_ONCE = 10_000
_ASK_FOR_LESS = "Ask for less: one run, a shorter time, fewer columns."
_WATCH = 0.02
_STATM = Path("/proc/self/statm")
_PAGE = 4096


class TooManyQueries(RuntimeError):  # noqa: N818  # the condition reads as a name
    """Others' queries are running; later there is room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlAnswer:
    """Rows of a query, in columns; `truncated` says that there would have been more.

    `total` is how many there are in all; None where nobody asked or counting took too long.
    """

    table: pyarrow.Table
    truncated: bool
    seconds: float
    total: int | None = None


class SqlSession:
    """Runs what others ask."""

    def __init__(
        self,
        connect: Callable[[], duckdb.DuckDBPyConnection],
        readable: Collection[str],
        *,
        seconds: float = SECONDS,
        growth: int = _MOST_GROWTH,
    ) -> None:
        """Ask on connections from `connect`; only relations named in `readable` are seen.

        A query may take so many seconds and let the process grow by so many bytes.
        """
        self._connect = connect
        self._readable = readable
        self._seconds = seconds
        self._growth = growth
        self._room = threading.BoundedSemaphore(AT_ONCE)
        self._running: set[duckdb.DuckDBPyConnection] = set()

    @property
    def idle(self) -> bool:
        """Whether no query runs."""
        return not self._running

    def ask(
        self,
        text: str,
        rows: int = MOST_ROWS,
        values: Mapping[str, Any] | None = None,
        *,
        counted: bool = False,
    ) -> SqlAnswer:
        """Return the first rows of the answer to one statement.

        `values` are bound to its parameters, by name; `counted` asks how many rows there are in
        all.

        Raises:
            SqlRefused: it must not run, failed, or took too long.
            TooManyQueries: as many as can be are running.
        """
        if not self._room.acquire(blocking=False):
            raise TooManyQueries(f"{AT_ONCE} queries are running already")
        try:
            connection = self._connect()
            self._running.add(connection)
            try:
                statement = checked(connection, text, self._readable, values or ())
                return self._run(connection, statement, rows, values or {}, counted)
            finally:
                self._running.discard(connection)
                connection.close()
        finally:
            self._room.release()

    def _run(
        self,
        connection: duckdb.DuckDBPyConnection,
        statement: str,
        rows: int,
        values: Mapping[str, Any],
        counted: bool,
    ) -> SqlAnswer:
        begun = time.monotonic()
        total = None
        with (
            _ROOF.over((AT_ONCE + 1) * self._growth),
            _watched(connection, self._seconds, self._growth) as reasons,
        ):
            try:
                connection.execute("BEGIN TRANSACTION READ ONLY")
                reader = connection.execute(statement, values).to_arrow_reader(_ROWS_AT_ONCE)
                table, truncated = _first(reader, rows)
                if counted:
                    total = table.num_rows
                    if truncated:
                        total = _count(connection, statement, values)
            except duckdb.InterruptException as error:
                raise SqlRefused(
                    reasons[0] if reasons else "the query was interrupted", _ASK_FOR_LESS
                ) from error
            except (duckdb.Error, pyarrow.ArrowException, MemoryError, OSError) as error:
                # of an answer on its way, Arrow tells an interrupt as an error of its stream
                step = _ASK_FOR_LESS if reasons else "Correct the statement."
                raise SqlRefused(_sentence(error, reasons), step) from error
        seconds = time.monotonic() - begun
        return SqlAnswer(table=table, truncated=truncated, seconds=seconds, total=total)


@contextmanager
def limited(connection: duckdb.DuckDBPyConnection, seconds: float = SECONDS) -> Iterator[None]:
    """Interrupt what runs on a connection within the block after so many seconds."""
    with _watched(connection, seconds, _MOST_GROWTH):
        yield


class _Roof:
    """Keeps the process's address space below a limit while queries run, and lifts it then.

    What does not fit fails in the query that asks for it, and not by the kernel's killing all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._num_under = 0
        self._before = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    @contextmanager
    def over(self, growth: int) -> Iterator[None]:
        """Allow so many bytes more than there are at the start of the first of several queries."""
        with self._lock:
            if not self._num_under:
                self._before = soft, hard = resource.getrlimit(resource.RLIMIT_AS)
                size, _ = _memory()
                if size and soft == resource.RLIM_INFINITY:
                    limit = size + growth
                    if hard != resource.RLIM_INFINITY:
                        limit = min(limit, hard)
                    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
            self._num_under += 1
        try:
            yield
        finally:
            with self._lock:
                self._num_under -= 1
                if not self._num_under:
                    resource.setrlimit(resource.RLIMIT_AS, self._before)


_ROOF = _Roof()


@contextmanager
def _watched(
    connection: duckdb.DuckDBPyConnection, seconds: float, growth: int
) -> Iterator[list[str]]:
    """Interrupt the connection when time or memory is used up; gives the reason, then."""
    reasons: list[str] = []
    ended = threading.Event()
    allowed = _memory()[1] + growth
    deadline = time.monotonic() + seconds

    def watch() -> None:
        while not ended.wait(_WATCH):
            if time.monotonic() >= deadline:
                reasons.append(f"the query took longer than {seconds:g} s")
            elif _memory()[1] > allowed:
                reasons.append(f"the query took more than {growth >> 20} MiB of memory")
            else:
                continue
            # Again and again: an interrupt between two statements of the session is forgotten.
            connection.interrupt()

    watcher = threading.Thread(target=watch, name="headway-sql-watch", daemon=True)
    watcher.start()
    try:
        yield reasons
    finally:
        ended.set()
        watcher.join()


def _memory() -> tuple[int, int]:
    """Return address space and resident memory of this process in bytes; 0 where nobody tells."""
    try:
        size, resident = _STATM.read_text().split()[:2]
    except OSError:
        return 0, 0
    return int(size) * _PAGE, int(resident) * _PAGE


def _first(reader: pyarrow.RecordBatchReader, rows: int) -> tuple[pyarrow.Table, bool]:
    """Return the first rows, and whether there would have been more."""
    batches: list[pyarrow.RecordBatch] = []
    num_rows = size = 0
    for batch in reader:
        batches.append(batch)
        num_rows += batch.num_rows
        size += batch.nbytes
        if num_rows > rows or size > _MOST_BYTES:
            break
    table = pyarrow.Table.from_batches(batches, reader.schema)
    if size > _MOST_BYTES:
        share = max(int(num_rows * _MOST_BYTES / size), 1)
        return table.slice(0, min(rows, share)), True
    return table.slice(0, rows), num_rows > rows


def _count(
    connection: duckdb.DuckDBPyConnection, statement: str, values: Mapping[str, Any]
) -> int | None:
    """Return how many rows a statement has that was checked; None where that takes too long."""
    # Its end may be a comment or a semicolon.
    inner = statement.rstrip().rstrip(";")
    try:
        found = connection.execute(f"SELECT count(*) FROM ({inner}\n)", values).fetchone()  # noqa: S608
    except duckdb.Error:
        return None
    return int(found[0]) if found else None


def _sentence(error: BaseException, reasons: list[str]) -> str:
    if reasons:
        return reasons[0]
    return str(error).partition("\n")[0] or "there is not enough memory for the query"
