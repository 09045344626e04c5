"""Stored records over HTTP: events, what was measured of each step, what was refused."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import pyarrow  # type: ignore[import-untyped]  # ships no types

from headway import events as declared
from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, Endpoint
from headway.collector.paging import Cursor, cursor_of, foreign, key_of
from headway.collector.run_api import OneRun
from headway.collector.schemas import list_of, object_of, optional
from headway.collector.service import Service
from headway.storage.reading import EventFilter, Place

_MOST_STEPS = 1_000_000
_MOST_RECORDS = 10_000
_INT64 = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuestion:
    """A question about stored events."""

    run: Annotated[str | None, Asked(sentence="Only those of this run, by its id.")] = None
    name: Annotated[
        str | None, Asked(sentence="Only those of this kind.", choices=tuple(declared.EVENTS))
    ] = None
    node: Annotated[str | None, Asked(sentence="Only those of this node.")] = None
    rank: Annotated[int | None, Asked(sentence="Only those of this rank.")] = None
    since: Annotated[
        int | None, Asked(sentence="Only those at it or later by their node's clock, UTC ns.")
    ] = None
    until: Annotated[
        int | None, Asked(sentence="Only those before it by their node's clock, UTC ns.")
    ] = None
    limit: Annotated[
        int, Asked(sentence="Most events of a page.", lowest=1, highest=_MOST_RECORDS)
    ] = 100
    cursor: Cursor = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepQuestion(OneRun):
    """A question about the steps of one run."""

    first: Annotated[int, Asked(sentence="Number of the first step.", lowest=1)] = 1
    last: Annotated[int | None, Asked(sentence="Number of the last step.", lowest=1)] = None
    rank: Annotated[int | None, Asked(sentence="Only those of this rank.")] = None
    limit: Annotated[
        int,
        Asked(
            sentence="End the page with the record that reaches so many steps.",
            lowest=1,
            highest=_MOST_STEPS,
        ),
    ] = 1_000
    cursor: Cursor = None


def events(service: Service, asked: EventQuestion) -> Answer:
    """Stored events in order of their time; packed steps are at `step_records`."""
    wanted = EventFilter(
        **{name: getattr(asked, name) for name in EventFilter.__dataclass_fields__}
    )
    version = service.store.version
    table = service.store.reading.events(wanted, _place(asked.cursor), asked.limit)
    after = None
    if table.num_rows == asked.limit:
        newest = table.slice(table.num_rows - 1).to_pylist()[0]
        after = cursor_of((newest["time"], newest["producer"], newest["first_sequence"]))

    def content() -> dict[str, Any]:
        rows = [{**row, "fields": json.loads(row["fields"])} for row in table.to_pylist()]
        return {"events": rows, "next": after}

    return Answer(content=content, table=lambda: _with_next(table, after), version=version)


def step_records(service: Service, asked: StepQuestion) -> Answer:
    """What was measured of each completed step of one run; times by the node's clock, UTC ns."""
    run = service.ledgers.snapshot(asked.run).run
    version = service.store.version
    last = 2**62 if asked.last is None else asked.last
    table, place = service.store.reading.steps(
        run, asked.first, last, asked.rank, _place(asked.cursor), asked.limit
    )
    after = None if place is None else cursor_of(place)
    return Answer(
        content=lambda: {"steps": table.to_pylist(), "next": after},
        table=lambda: _with_next(table, after),
        version=version,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A question about refused records."""

    limit: Annotated[int, Asked(sentence="Most records.", lowest=1, highest=1_000)] = 100


def quarantine(service: Service, asked: Refused) -> Answer:
    """The newest records that were refused, and why."""
    version = service.store.version
    records = service.store.quarantined(asked.limit)
    return Answer(
        content=lambda: {"records": [asdict(record) for record in records]}, version=version
    )


def _place(cursor: str | None) -> Place | None:
    if cursor is None:
        return None
    match key_of(cursor):
        case (int() as time, str() as producer, int() as sequence) if (
            abs(time) < _INT64 and abs(sequence) < _INT64
        ):
            return time, producer, sequence
    raise foreign(cursor)


def _with_next(table: pyarrow.Table, after: str | None) -> pyarrow.Table:
    """Return a table that tells the cursor of the next page in its schema's metadata."""
    return table.replace_schema_metadata({} if after is None else {"next": after})


_COLUMNS: Mapping[str, schemas.Schema] = {
    "producer": schemas.TEXT,
    "first_sequence": schemas.INTEGER,
    "last_sequence": schemas.INTEGER,
    "time": schemas.INTEGER,
    "run": optional(schemas.TEXT),
    "attempt": optional(schemas.TEXT),
    "rank": optional(schemas.INTEGER),
    "node": optional(schemas.TEXT),
    "name": schemas.TEXT,
    "fields": schemas.map_of(schemas.ANYTHING),
}
_STEP: Mapping[str, schemas.Schema] = {
    "step": schemas.INTEGER,
    "start": schemas.INTEGER,
    "duration": schemas.INTEGER,
    "data_wait": schemas.INTEGER,
    "loss": optional(schemas.NUMBER),
    "samples": optional(schemas.INTEGER),
    "attempt": optional(schemas.TEXT),
    "rank": optional(schemas.INTEGER),
    "node": optional(schemas.TEXT),
}
_REFUSED: Mapping[str, schemas.Schema] = {
    "received": schemas.INTEGER,
    "reason": schemas.TEXT,
    "raw": schemas.TEXT,
}

ENDPOINTS = (
    Endpoint.get(
        "/api/v1/events",
        events,
        object_of(events=list_of(object_of(**_COLUMNS)), next=schemas.NEXT),
        bulk=True,
    ),
    Endpoint.get(
        "/api/v1/runs/{run}/step_records",
        step_records,
        object_of(steps=list_of(object_of(**_STEP)), next=schemas.NEXT),
        bulk=True,
    ),
    Endpoint.get(
        "/api/v1/quarantine",
        quarantine,
        object_of(records=list_of(object_of(**_REFUSED))),
    ),
)
