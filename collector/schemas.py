"""What answers look like, as JSON schemas for the OpenAPI document; from types where there are."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from headway.collector.remarks import Remark
from headway.ledger.model import (
    AttemptSummary,
    CheckpointSummary,
    Interval,
    Problem,
    StepCounts,
)

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer", "format": "int64"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
ANYTHING: Schema = {}
NEXT: Schema = {"type": ["string", "null"], "description": "Cursor of the next page."}
_PLAIN: Mapping[type, Schema] = {str: TEXT, int: INTEGER, float: NUMBER, bool: FLAG}


COMPONENTS: dict[str, Schema] = {}
"""Schemas that the document holds once, by name."""


def named(name: str, schema: Schema) -> Schema:
    """Keep a schema among the components of the document; return a reference to it."""
    COMPONENTS[name] = schema
    return {"$ref": f"#/components/schemas/{name}"}


def both(one: Schema, other: Schema) -> Schema:
    """Return the schema of what fits two."""
    return {"allOf": [one, other]}


def optional(schema: Schema) -> Schema:
    """Return a schema that allows null: unknown."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def map_of(schema: Schema) -> Schema:
    """Return the schema of an object whose names are not known beforehand."""
    return {"type": "object", "additionalProperties": schema}


def object_of(**properties: Schema) -> Schema:
    """Return the schema of an object that has at least these properties."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def of(declaration: Any) -> Schema:
    """Return the schema of a type as `dataclasses.asdict` writes it."""
    if declaration in _PLAIN:
        return _PLAIN[declaration]
    origin, arguments = typing.get_origin(declaration), typing.get_args(declaration)
    if origin in (typing.Union, types.UnionType):
        (base,) = (part for part in arguments if part is not type(None))
        return optional(of(base))
    if origin is tuple:
        return list_of(of(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return map_of(of(arguments[1]))
    hints = typing.get_type_hints(declaration)
    return object_of(
        **{item.name: of(hints[item.name]) for item in dataclasses.fields(declaration)}
    )


RANGE = named("Range", object_of(low=optional(NUMBER), high=optional(NUMBER)))
ATTEMPT = named("Attempt", of(AttemptSummary))
CHECKPOINT = named("Checkpoint", of(CheckpointSummary))
INTERVAL = named("Interval", of(Interval))
CURVE_POINT = object_of(time=INTEGER, step=INTEGER, attempt=optional(TEXT))
SUMMARY = named(
    "Summary",
    object_of(
        run=TEXT,
        run_name=TEXT,
        as_of=INTEGER,
        start=INTEGER,
        end=optional(INTEGER),
        provisional=FLAG,
        state=TEXT,
        last_event=optional(INTEGER),
        elapsed_ns=INTEGER,
        categories=map_of(INTEGER),
        parts=map_of(map_of(INTEGER)),
        training_goodput=RANGE,
        infrastructure_goodput=RANGE,
        checkpoint_efficiency=optional(NUMBER),
        attempts=INTEGER,
        failed_starts=INTEGER,
        steps=of(StepCounts),
        problems=list_of(of(Problem)),
        flags=list_of(TEXT),
        labels=map_of(ANYTHING),
        links=map_of(ANYTHING),
    ),
)
INCIDENT = named(
    "Incident",
    object_of(
        incident=TEXT,
        number=INTEGER,
        opened=INTEGER,
        closed=optional(INTEGER),
        recovered=optional(INTEGER),
        caught_up=optional(INTEGER),
        cause=TEXT,
        headline=TEXT,
        state=TEXT,
        outcome=TEXT,
        rollback_steps=optional(INTEGER),
        lost_ns=INTEGER,
        lost_gpu_ns=INTEGER,
        attempts=INTEGER,
    ),
)
INCIDENT_OF_RUN = both(
    INCIDENT,
    object_of(
        run=TEXT, run_name=TEXT, team=optional(TEXT), group=TEXT, acknowledged_by=optional(TEXT)
    ),
)
REMARK = named("Remark", of(Remark))
ONE_INCIDENT = both(
    INCIDENT_OF_RUN,
    object_of(as_of=INTEGER, history=list_of(REMARK), labels=list_of(TEXT), cordon=list_of(TEXT)),
)
REPORT = both(
    SUMMARY,
    object_of(
        attempt_list=list_of(ATTEMPT),
        checkpoints=list_of(CHECKPOINT),
        incidents=list_of(INCIDENT),
    ),
)
WINDOW = named(
    "Window",
    object_of(
        start=INTEGER,
        end=INTEGER,
        elapsed_ns=INTEGER,
        excluded=list_of(object_of(start=INTEGER, end=INTEGER)),
        categories=map_of(INTEGER),
        training_goodput=RANGE,
        infrastructure_goodput=RANGE,
        checkpoint_efficiency=optional(NUMBER),
    ),
)
NODE_RATE = named(
    "Rate",
    object_of(
        failures=INTEGER,
        node_days=NUMBER,
        rate=optional(NUMBER),
        low=optional(NUMBER),
        high=optional(NUMBER),
    ),
)
NODE = named(
    "Node",
    object_of(
        node=TEXT,
        runs=list_of(TEXT),
        failures=INTEGER,
        per_1000_node_days=NODE_RATE,
        gpus=list_of({}),
    ),
)
CHANGE = named(
    "Change", object_of(field=TEXT, name=optional(TEXT), before=ANYTHING, after=ANYTHING)
)
ERROR = named("Error", object_of(error=TEXT, next=TEXT))
