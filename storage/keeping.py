"""What outlives raw records: segments in their place, and rows of what the ledger says.

Rows are never changed; a newer word about a key is a row of a higher revision.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from itertools import chain
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    Table,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
)

from headway.events import Envelope, Steps, StepsSummary
from headway.expiry import Expiry
from headway.ledger.segments import FrozenSegment, Lead, Stretch
from headway.storage.event_columns import event_table
from headway.storage.rows import from_row, insert, insert_arrow
from headway.storage.tables import DERIVED, EVENTS, RUNS, SEGMENTS

_KEYS_AT_ONCE = 1000
_STEPS = (Steps.name, StepsSummary.name)

Rows = Mapping[Table, Sequence[Mapping[str, Any]]]
"""Rows of the tables of what the ledger says, without revision."""
_Keyed = dict[tuple[Any, ...], dict[str, Any]]
"""Rows of one table by what tells them apart."""


class Keeping:
    """Reads and writes what is kept for good, beside the one thread that appends events."""

    def __init__(self, engine: Engine) -> None:
        """Work on a database of this version's schema."""
        self._engine = engine
        self._known: dict[str, dict[Table, _Keyed]] = {}

    def of_run(self, run: str) -> list[Envelope]:
        """Return the stored events of a run."""
        with self._engine.connect() as connection:
            return [from_row(row) for row in connection.execute(_events_of(run))]

    def segments(self, run: str | None = None) -> dict[str, list[FrozenSegment]]:
        """Return the segments of a run, or of all runs, by run."""
        statement = _newest(SEGMENTS)
        if run is not None:
            statement = statement.where(SEGMENTS.c.run == run)
        found: dict[str, list[FrozenSegment]] = {}
        with self._engine.connect() as connection:
            for row in connection.execute(statement):
                found.setdefault(row.run, []).append(_segment(row._asdict()))
        return found

    def expirable(self, before: int) -> dict[str, int]:
        """Return for each run how many raw records of steps were done before a time in ns."""
        time = EVENTS.c.anchor + EVENTS.c.monotonic
        statement = (
            select(EVENTS.c.run, func.count().label("records"))
            .where(EVENTS.c.name.in_(_STEPS), EVENTS.c.run.is_not(None), time < before)
            .group_by(EVENTS.c.run)
            .order_by(EVENTS.c.run)
        )
        with self._engine.connect() as connection:
            return {row.run: row.records for row in connection.execute(statement)}

    def expire(self, run: str, expiry: Expiry, recorded: int) -> None:
        """Put segments in the place of raw records, in one transaction."""
        gone = [(envelope.producer, envelope.first_sequence) for envelope in expiry.removed]
        with self._engine.begin() as connection:
            for start in range(0, len(gone), _KEYS_AT_ONCE):
                keys = gone[start : start + _KEYS_AT_ONCE]
                connection.execute(
                    delete(EVENTS).where(
                        EVENTS.c.run == run,
                        tuple_(EVENTS.c.producer, EVENTS.c.first_sequence).in_(keys),
                    )
                )
            if expiry.kept:
                insert_arrow(connection, EVENTS, event_table(expiry.kept))
            insert(
                connection,
                SEGMENTS,
                [
                    {**_row(run, segment), "revision": 1, "recorded": recorded, "present": True}
                    for segment in expiry.segments
                ],
            )

    def say(self, said: Mapping[str, Rows], recorded: int) -> int:
        """Write what ledgers say of runs as far as it is new, at once; return how many rows."""
        new: dict[Table, dict[str, _Keyed]] = defaultdict(dict)
        with self._engine.begin() as connection:
            known = self._known_of(connection, said)
            for run, rows in said.items():
                for table, told in rows.items():
                    new[table][run] = _changes(table, known[run][table], told, recorded)
            for table, by_run in new.items():
                changed = [row for keyed in by_run.values() for row in keyed.values()]
                if changed:
                    insert(connection, table, changed)
        self._known |= known
        for table, by_run in new.items():
            for run, keyed in by_run.items():
                known[run][table] |= keyed
        return sum(len(keyed) for by_run in new.values() for keyed in by_run.values())

    def _known_of(
        self, connection: Connection, said: Mapping[str, Rows]
    ) -> dict[str, dict[Table, _Keyed]]:
        """Return the newest row of each key of these runs, those no longer so included."""
        found = {run: self._known[run] for run in said if run in self._known}
        missing: dict[str, dict[Table, _Keyed]] = {
            run: {table: {} for table in rows} for run, rows in said.items() if run not in found
        }
        for table in dict.fromkeys(chain.from_iterable(missing.values())):
            of_runs = select(table).where(table.c.run.in_(missing)).order_by(table.c.revision)
            for row in connection.execute(of_runs):
                values = row._asdict()
                missing[values["run"]][table][_key(table, values)] = values
        return found | missing

    def take(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
        """Write rows of another database as they are, those whose revision is not known."""
        known = tuple(table.c[name] for name in (*table.info["keys"], "revision"))
        with self._engine.begin() as connection:
            old = {tuple(row) for row in connection.execute(select(*known))}
            new = [row for row in rows if tuple(row[c.name] for c in known) not in old]
            if new:
                insert(connection, table, new)
        self._known.clear()
        return len(new)

    def forget_superseded(self, before: int) -> None:
        """Delete rows written before a time in UTC ns of which there is a newer revision.

        What was said of a run that was over stays: such a word was not provisional.
        """
        with self._engine.begin() as connection:
            for table in DERIVED:
                newer = table.alias()
                same = [newer.c[key] == table.c[key] for key in table.info["keys"]]
                later = exists(select(literal(1)).where(*same, newer.c.revision > table.c.revision))
                statement = delete(table).where(table.c.recorded < before, later)
                if table is RUNS:
                    statement = statement.where(or_(RUNS.c.provisional, ~RUNS.c.present))
                connection.execute(statement)


def _events_of(run: str) -> Any:
    return select(EVENTS).where(EVENTS.c.run == run)


def _newest(table: Table) -> Any:
    """Return the newest revision of each row of a table that is still so."""
    newer = table.alias()
    same = [newer.c[key] == table.c[key] for key in table.info["keys"]]
    later = exists(select(literal(1)).where(*same, newer.c.revision > table.c.revision))
    return select(table).where(table.c.present, ~later)


def _key(table: Table, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in table.info["keys"])


def _changes(
    table: Table,
    known: Mapping[tuple[Any, ...], Mapping[str, Any]],
    said: Sequence[Mapping[str, Any]],
    recorded: int,
) -> _Keyed:
    """Return the rows to be written: new or changed ones, and those that are no longer so."""
    found = {}
    rows = {_key(table, row): row for row in said}
    for key, row in rows.items():
        old = known.get(key)
        if old is None or not old["present"] or any(old[name] != row[name] for name in row):
            revision = 1 if old is None else old["revision"] + 1
            found[key] = {**row, "revision": revision, "recorded": recorded, "present": True}
    for key, old in known.items():
        if key not in rows and old["present"]:
            revision = old["revision"] + 1
            found[key] = {**old, "revision": revision, "recorded": recorded, "present": False}
    return found


def _row(run: str, segment: FrozenSegment) -> dict[str, Any]:
    first, last = segment.stretches[0], segment.stretches[-1]
    lead = segment.lead
    detail = {
        "stretches": [astuple(stretch) for stretch in segment.stretches],
        "pieces": segment.pieces,
        "lead": None if lead is None else astuple(lead),
    }
    return {
        "run": run,
        "attempt": segment.attempt,
        "first_row": segment.first_row,
        "num_steps": segment.num_steps,
        "first_step": first.number - first.count + 1,
        "last_step": last.number,
        "started": first.begin,
        "ended": last.end,
        "work": segment.work,
        "data_wait": segment.data_wait,
        "other": segment.other,
        "detail": json.dumps(detail),
    }


def _segment(row: Mapping[str, Any]) -> FrozenSegment:
    detail = json.loads(row["detail"])
    lead = detail["lead"]
    if lead is not None:
        since, rank, waits = lead
        lead = Lead(since, rank, tuple((start, end) for start, end in waits))
    return FrozenSegment(
        attempt=row["attempt"],
        first_row=row["first_row"],
        stretches=tuple(Stretch(*stretch) for stretch in detail["stretches"]),
        pieces=tuple((start, end, name, part) for start, end, name, part in detail["pieces"]),
        lead=lead,
    )
