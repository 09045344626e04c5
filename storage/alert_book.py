"""The book of alerting: alerts, groups, silences and notices, each change one transaction.

Times are seconds UTC. Rows are plain values: what they mean is the business of `headway.alerts`.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, create_engine, delete, event, insert, select, text, update
from sqlalchemy.exc import DatabaseError

from headway.storage.alert_tables import ALERTS, GROUPS, METADATA, OUTBOX, SILENCES, VERSION

KEPT = 90 * 86_400.0
"""Seconds for which a notice that was delivered or refused stays in the log."""
_LONGEST_WAIT = 3_600.0
"""No notice waits longer than this in seconds for its next try."""
_OPEN = ("waiting", "refused")
"""States of a notice that is still to be tried."""

Row = dict[str, Any]


class BookError(RuntimeError):
    """The file is no book of alerting, one of a newer version, or cannot be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertKey:
    """Which alert a row is about."""

    rule: str
    labels: tuple[tuple[str, str], ...]


def book_of(database: Path) -> Path:
    """Return where the book of a collector lies unless it is told otherwise."""
    return database.with_suffix(".alerts.sqlite")


class AlertBook:
    """One SQLite file, used by one process at a time, by any number of its threads.

    Whatever reads or writes raises `BookError` where that cannot be done.
    """

    def __init__(self, path: Path, *, closed: bool = False) -> None:
        """Open the file, or make it; a closed one is only read, and nothing of it changes.

        Raises:
            BookError: a file that is something else, or of a newer version; no file to be read.
        """
        address = _only_read(path) if closed else f"sqlite:///{path}"
        self._engine = create_engine(address, connect_args={"timeout": 10})
        self._lock = threading.Lock()
        try:
            if closed:
                with self._engine.connect() as connection:
                    _check_version(connection, path)
                    connection.execute(select(OUTBOX.c.notice).limit(1))
                return
            event.listen(self._engine, "connect", _configure)
            with self._engine.begin() as connection:
                _check_version(connection, path)
                METADATA.create_all(connection)
                connection.execute(text(f"PRAGMA user_version = {VERSION}"))
        except DatabaseError as error:
            raise BookError(f"{path} is no file of alerting: {error.orig}; move it away") from error

    def close(self) -> None:
        """Let go of the file."""
        self._engine.dispose()

    def alerts(self) -> dict[AlertKey, Row]:
        """Return what was kept of each alert."""
        with self._reading() as connection:
            return {
                AlertKey(rule=rule, labels=tuple((k, v) for k, v in json.loads(labels))): row
                for rule, labels, row in connection.execute(select(ALERTS))
            }

    def groups(self) -> list[Row]:
        """Return what was kept of each group."""
        with self._reading() as connection:
            return [dict(row) for row in connection.execute(select(GROUPS.c.row)).scalars()]

    def turn(
        self,
        alerts: Mapping[AlertKey, Row],
        groups: Mapping[str, Row],
        notices: Sequence[Row],
        now: float,
    ) -> None:
        """Keep the outcome of one evaluation: all alerts and groups as they are, new notices.

        A notice has `receiver`, `key`, `subject` and `body`. What is said, and that it was said,
        are one transaction: after a crash it is sent again, or decided again, and never lost.
        """
        with self._changing() as connection:
            connection.execute(delete(ALERTS))
            connection.execute(delete(GROUPS))
            if alerts:
                rows = [
                    {"rule": key.rule, "labels": json.dumps(key.labels), "row": row}
                    for key, row in alerts.items()
                ]
                connection.execute(insert(ALERTS), rows)
            if groups:
                kept = [{"key": key, "row": row} for key, row in groups.items()]
                connection.execute(insert(GROUPS), kept)
            _post(connection, notices, now)
            old = OUTBOX.c.ended < now - KEPT
            connection.execute(delete(OUTBOX).where(old))

    def post(self, notices: Sequence[Row], now: float) -> None:
        """Keep notices to be sent, beside those of an evaluation."""
        with self._changing() as connection:
            _post(connection, notices, now)

    def change_group(self, key: str, row: Row) -> bool:
        """Replace what is kept of a group; return whether it was still there."""
        with self._changing() as connection:
            done = connection.execute(update(GROUPS).where(GROUPS.c.key == key).values(row=row))
            return bool(done.rowcount)

    def silences(self) -> list[Row]:
        """Return every silence, the newest first."""
        with self._reading() as connection:
            found = connection.execute(select(SILENCES).order_by(SILENCES.c.silence.desc()))
            return [dict(row) for row in found.mappings()]

    def silence(self, row: Row) -> int:
        """Keep a silence and return its number."""
        with self._changing() as connection:
            made = connection.execute(insert(SILENCES).values(**row))
            (number,) = made.inserted_primary_key or (0,)
            return int(number)

    def end_silence(self, number: int, now: float) -> bool:
        """Let a silence end now; return whether there is one of this number."""
        with self._changing() as connection:
            which = update(SILENCES).where(SILENCES.c.silence == number)
            return bool(connection.execute(which.values(ends=now)).rowcount)

    def due(self, now: float) -> list[Row]:
        """Return the notices to be sent at a time, the oldest first.

        A receiver is told of one key in order: an earlier notice that waits to be tried again
        holds back the later ones, or a pager would open what is over. One that was refused holds
        back nothing: the fault may be its own. What is due in hours was kept by a clock that was
        ahead.
        """
        undone = select(OUTBOX).where(OUTBOX.c.state.in_(_OPEN)).order_by(OUTBOX.c.notice)
        with self._reading() as connection:
            rows = [dict(row) for row in connection.execute(undone).mappings()]
        first: dict[tuple[str, str], int] = {}
        for row in rows:
            if row["state"] == "waiting":
                first.setdefault((row["receiver"], row["key"]), row["notice"])
        return [
            row
            for row in rows
            if not now < row["due"] <= now + _LONGEST_WAIT
            and first.get((row["receiver"], row["key"]), row["notice"]) >= row["notice"]
        ]

    def undelivered(self) -> list[Row]:
        """Return of each receiver that has not taken a notice how many, and the oldest of them.

        A row has `receiver`, `notices`, `since` (seconds UTC), `state`, `tries` and `answer`.
        """
        undone = select(OUTBOX).where(OUTBOX.c.state.in_(_OPEN)).order_by(OUTBOX.c.notice)
        found: dict[str, Row] = {}
        with self._reading() as connection:
            for row in connection.execute(undone).mappings():
                told = {name: row[name] for name in ("receiver", "state", "tries", "answer")}
                oldest = {**told, "since": row["created"], "notices": 0}
                found.setdefault(row["receiver"], oldest)["notices"] += 1
        return list(found.values())

    def tried(self, notice: int, answer: str, due: float | None, state: str, now: float) -> None:
        """Keep what a receiver answered: the notice waits until `due`, or is over.

        One that was delivered says all that those before it under its key said: they are
        superseded.
        """
        ended = None if state in _OPEN else now
        values = {"answer": answer, "state": state, "ended": ended}
        if due is not None:
            values["due"] = due
        with self._changing() as connection:
            which = update(OUTBOX).where(OUTBOX.c.notice == notice)
            connection.execute(which.values(tries=OUTBOX.c.tries + 1, **values))
            if state == "delivered":
                this = select(OUTBOX.c.receiver, OUTBOX.c.key).where(OUTBOX.c.notice == notice)
                receiver, key = connection.execute(this).one()
                earlier = (OUTBOX.c.receiver == receiver, OUTBOX.c.key == key)
                undone = (OUTBOX.c.notice < notice, OUTBOX.c.state.in_(_OPEN))
                over = {"state": "superseded", "ended": now}
                connection.execute(update(OUTBOX).where(*earlier, *undone).values(over))

    def deliveries(self, limit: int, before: int | None = None) -> list[Row]:
        """Return the newest notices with what became of them, at most `limit` before a number."""
        query = select(OUTBOX).order_by(OUTBOX.c.notice.desc()).limit(limit)
        if before is not None:
            query = query.where(OUTBOX.c.notice < before)
        with self._reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def about(self, subjects: Sequence[str], since: float, until: float) -> list[Row]:
        """Return the notices about subjects made between two times, the oldest first."""
        query = select(OUTBOX).where(
            OUTBOX.c.subject.in_(subjects), OUTBOX.c.created.between(since, until)
        )
        with self._reading() as connection:
            found = connection.execute(query.order_by(OUTBOX.c.notice))
            return [dict(row) for row in found.mappings()]

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        with self._lock, _told("written"), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with _told("read"), self._engine.connect() as connection:
            yield connection


@contextmanager
def _told(verb: str) -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        raise BookError(f"the file of alerting cannot be {verb}: {error.orig}") from error


def _only_read(path: Path) -> str:
    """Return the address of a file that nobody holds, which is left as it is.

    Without a log beside it not even what readers share is written.
    """
    log = path.with_name(f"{path.name}-wal")
    settled = "" if log.exists() and log.stat().st_size else "&immutable=1"
    return f"sqlite:///file:{quote(str(path))}?mode=ro&uri=true{settled}"


def _check_version(connection: Connection, path: Path) -> None:
    version = connection.execute(text("PRAGMA user_version")).scalar_one()
    if version > VERSION:
        raise BookError(
            f"{path} has version {version} of alerting's tables, and this is {VERSION}: use the "
            "Headway that wrote it, or move the file away"
        )


def _post(connection: Connection, notices: Sequence[Row], now: float) -> None:
    if notices:
        fresh = {"state": "waiting", "created": now, "due": now, "tries": 0}
        connection.execute(insert(OUTBOX), [{**one, **fresh} for one in notices])


def _configure(connection: Any, _: object) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
