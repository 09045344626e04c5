"""Guarded SQL over HTTP; what may run is decided in `headway.storage.sql_guard`."""

import base64
import math
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

import pyarrow  # type: ignore[import-untyped]  # ships no types

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, Endpoint
from headway.collector.schemas import list_of, object_of
from headway.collector.service import Service
from headway.storage.sql_guard import LONGEST
from headway.storage.sql_session import MOST_ROWS, SqlAnswer
from headway.storage.views import readable

Rows = Annotated[int, Asked(sentence="Most rows.", lowest=1, highest=MOST_ROWS)]
Counted = Annotated[
    int,
    Asked(sentence="1 asks how many rows there are in all, too: `total`.", lowest=0, highest=1),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlQuestion:
    """One statement."""

    sql: Annotated[
        str,
        Asked(
            sentence=f"One SELECT or EXPLAIN of at most {LONGEST} characters.",
            example="SELECT run, training_goodput_low FROM v_runs",
        ),
    ]
    parameters: Annotated[
        dict[str, Any] | None,
        Asked(sentence="Values of the statement's parameters, by name: texts, numbers or flags."),
    ] = None
    counted: Counted = 0
    limit: Rows = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewQuestion:
    """A question about what can be asked."""


def sql(service: Service, asked: SqlQuestion) -> Answer:
    """The answer to one SQL statement over the documented views."""
    return rows_of(
        service.store.reading.sql.ask(
            asked.sql, asked.limit, asked.parameters, counted=bool(asked.counted)
        )
    )


def rows_of(answer: SqlAnswer) -> Answer:
    """Return the rows of a query as an endpoint answers them."""
    names = answer.table.schema.names

    def content() -> dict[str, Any]:
        columns = [_values(column) for column in answer.table.columns]
        return {
            "columns": [
                {"name": field.name, "type": str(field.type)} for field in answer.table.schema
            ],
            "rows": [[plain(value) for value in row] for row in zip(*columns, strict=True)],
            "truncated": answer.truncated,
            "total": answer.total,
            "seconds": answer.seconds,
        }

    def table() -> Any:
        # Names of an answer need not differ, and not every reader of Arrow allows for that.
        unique = [
            name if names.index(name) == place else f"{name}_{place + 1}"
            for place, name in enumerate(names)
        ]
        said = {"truncated": str(answer.truncated).lower(), "seconds": f"{answer.seconds:.6f}"}
        return answer.table.rename_columns(unique).replace_schema_metadata(said)

    return Answer(content=content, table=table)


def _values(column: pyarrow.ChunkedArray) -> list[Any]:
    """Return what a column holds, as Python has it."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return [_value(one) for one in column]


def _value(one: pyarrow.Scalar) -> Any:
    """Return a value: as text where Python has none, as of a day in 99999.

    A struct whose fields have no names, or twice the same, is a list.
    """
    if not one.is_valid:
        return None
    match one:
        case pyarrow.MapScalar():
            return [[_value(entry[0]), _value(entry[1])] for entry in one.values]
        case pyarrow.StructScalar():
            values = [_value(one[place]) for place in range(len(one.type))]
            names = [field.name for field in one.type]
            return values if len({*names}) < len(names) else dict(zip(names, values, strict=True))
        case pyarrow.ListScalar():  # one of a fixed size is one of these, too
            return [_value(item) for item in one.values]
    try:
        return one.as_py()
    except OverflowError:
        return one.cast(pyarrow.string()).as_py()


def views(service: Service, asked: ViewQuestion) -> Answer:
    """What SQL can read: every view with its columns and what they say."""
    found = [
        {
            "name": name,
            "columns": [
                {"name": column, "sentence": sentence} for column, sentence in columns.items()
            ],
        }
        for name, columns in readable().items()
    ]
    return Answer(content=lambda: {"views": found})


def plain(value: Any) -> Any:
    """Return a value of an answer as JSON can say it; numbers that are none are unknown."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {str(name): plain(item) for name, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case date() | datetime() | time():
            return value.isoformat()
        case timedelta() | UUID():
            return str(value)
    return str(value)


_COLUMN = object_of(name=schemas.TEXT, type=schemas.TEXT)
ROWS = schemas.named(
    "Rows",
    object_of(
        columns=list_of(_COLUMN),
        rows=list_of(list_of(schemas.ANYTHING)),
        truncated=schemas.FLAG,
        total=schemas.optional(schemas.INTEGER),
        seconds=schemas.NUMBER,
    ),
)
_VIEW = object_of(
    name=schemas.TEXT, columns=list_of(object_of(name=schemas.TEXT, sentence=schemas.TEXT))
)
ENDPOINTS = (
    Endpoint.post(
        "/api/v1/sql",
        sql,
        ROWS,
        bulk=True,
    ),
    Endpoint.get(
        "/api/v1/views",
        views,
        object_of(views=list_of(_VIEW)),
    ),
)
