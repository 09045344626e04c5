"""The documented views: what may be asked with SQL, and what each column says.

Views are written anew whenever a database is opened, so that they always fit these declarations.
Times of events are those of the node's clock; what the ledger derived is on the collector's.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    ColumnElement,
    Connection,
    Dialect,
    Double,
    Select,
    Table,
    case,
    cast,
    distinct,
    func,
    inspect,
    literal,
    make_url,
    or_,
    select,
)
from sqlalchemy.schema import CreateView, SetColumnComment, SetTableComment
from sqlalchemy.sql.ddl import DDL, DDLElement

from headway import wire
from headway.events import (
    Envelope,
    Fault,
    GpuFault,
    GpuSxid,
    GpuXid,
    Health,
    IncidentAcknowledged,
    IncidentCorrected,
    Note,
    ResultAttached,
    RunConfigured,
    Steps,
    StepsSummary,
)
from headway.incidents.model import PHASES
from headway.storage.migrations import VERSION_TABLE
from headway.storage.tables import (
    ATTEMPTS,
    CHECKPOINTS,
    EVENTS,
    INCIDENTS,
    METADATA,
    RUNS,
    SEGMENTS,
)

_TIME = "Time of the event by its node's clock, UTC ns."
_EXPIRING = "It holds the records that have not expired yet."


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One view: its name, one sentence, a sentence for each column in order, and its statement."""

    name: str
    sentence: str
    columns: Mapping[str, str]
    statement: Select[Any]


@cache
def views() -> Sequence[View]:
    """Return every documented view, in the order of the reference page."""
    return (
        _of_derived("v_runs", "Every run with its ledger.", RUNS, _of_labels),
        _of_derived("v_attempts", "Every attempt of every run.", ATTEMPTS),
        _of_derived("v_incidents", "Every incident of every run.", INCIDENTS, _of_incident),
        _of_derived("v_checkpoints", "Every save of every run.", CHECKPOINTS),
        _of_derived(
            "v_segments",
            "Steps between two checkpoints of which the raw records have expired.",
            SEGMENTS,
        ),
        _longest_phases(),
        _configurations(),
        _steps(),
        _faults(),
        _nodes(),
        _stays(),
        _remarks(),
        _results(),
    )


def readable() -> Mapping[str, Mapping[str, str]]:
    """Return what guarded SQL may read: each view and `events`, with a sentence per column."""
    events = {column.name: column.comment or "" for column in EVENTS.columns}
    return {**{view.name: view.columns for view in views()}, EVENTS.name: events}


def describe(connection: Connection) -> None:
    """Write the views and the comments of tables and views into a database that has others."""
    statements = _words(connection.dialect.name)
    digest = hashlib.sha256("\n".join(statements).encode()).hexdigest()
    mark = f"Version of the schema; described by {digest}."
    if inspect(connection).get_table_comment(VERSION_TABLE)["text"] == mark:
        return
    for statement in [*statements, f"COMMENT ON TABLE {VERSION_TABLE} IS '{mark}'"]:
        connection.exec_driver_sql(statement)


@cache
def _words(name: str) -> tuple[str, ...]:
    """Return the statements as the engine of a name reads them; they are always the same ones."""
    dialect: Dialect = make_url(f"{name}://").get_dialect()()
    return tuple(str(statement.compile(dialect=dialect)) for statement in _statements(dialect))


def _statements(dialect: Dialect) -> Iterator[DDLElement]:
    for table in METADATA.sorted_tables:
        yield SetTableComment(table)
        for column in table.columns:
            yield SetColumnComment(column)
    quote = dialect.identifier_preparer.quote
    for view in views():
        yield CreateView(view.statement, view.name, or_replace=True)
        yield _comment("VIEW", quote(view.name), view.sentence)
        for name, sentence in view.columns.items():
            yield _comment("COLUMN", f"{quote(view.name)}.{quote(name)}", sentence)


def _comment(kind: str, target: str, sentence: str) -> DDL:
    words = sentence.replace("'", "''").replace("%", "%%")
    return DDL(f"COMMENT ON {kind} {target} IS '{words}'")  # type: ignore[no-untyped-call]


_Columns = Mapping[str, tuple[ColumnElement[Any], str]]
"""Columns by name: what each is, and a sentence about it."""


def _of_derived(
    name: str,
    sentence: str,
    table: Table,
    more: Callable[[Any], _Columns] = lambda _: {},
) -> View:
    """Return a view of the newest revision of each row that is still so.

    `more` gives further columns that are read out of those.
    """
    keys = [table.c[key] for key in table.info["keys"]]
    newest = func.row_number().over(partition_by=keys, order_by=table.c.revision.desc())
    ranked = select(table, newest.label("place")).subquery()
    shown: dict[str, tuple[ColumnElement[Any], str]] = {
        column.name: (ranked.c[column.name], column.comment or "")
        for column in table.columns
        if column.name not in ("present",)
    }
    shown |= more(ranked.c)
    return _view(
        name, sentence, shown, lambda one: one.where(ranked.c.place == 1, ranked.c.present)
    )


def _view(
    name: str, sentence: str, columns: _Columns, rest: Callable[[Select[Any]], Select[Any]]
) -> View:
    """Return a view of these columns; `rest` adds what comes after them in its statement."""
    selected = select(*(expression.label(column) for column, (expression, _) in columns.items()))
    return View(
        name=name,
        sentence=sentence,
        columns={column: sentence for column, (_, sentence) in columns.items()},
        statement=rest(selected),
    )


def _of_labels(row: Any) -> _Columns:
    labels = cast(row.labels, JSON)
    return {
        "team": (labels["team"].as_string(), "Team by the run's labels."),
        "cluster": (labels["cluster"].as_string(), "Cluster by the run's labels."),
    }


def _of_incident(row: Any) -> _Columns:
    content = cast(row.content, JSON)
    spent = {
        f"phase_{phase}": (
            cast(content["phases", phase].as_string(), BigInteger),
            f"Time of its phase {phase} in ns.",
        )
        for phase in PHASES
    }
    return {
        "state": (content["state"].as_string(), "open or closed."),
        "attempt": (content["attempt_ids", 0].as_string(), "Attempt that broke first."),
        "signature": (
            content["signature"].as_string(),
            "What the fault has in common with others of its kind.",
        ),
        **spent,
    }


def _longest_phases() -> View:
    said = _of_derived("", "", RUNS).statement.subquery()
    each = select(
        said.c.run,
        func.unnest(func.json_extract(said.c.summary, "$.longest_phases[*]")).label("one"),
    ).subquery()
    one = cast(each.c.one, JSON)

    def number(name: str) -> ColumnElement[int]:
        return cast(one[name].as_string(), BigInteger)

    columns: _Columns = {
        "run": (each.c.run, "Identity of the run."),
        "phase": (one["phase"].as_string(), "Name of the phase."),
        "longest": (number("longest_ns"), "Its longest stretch in ns."),
        "rank": (number("rank"), "Rank that was in it."),
        "attempt": (one["attempt"].as_string(), "Attempt in which that was."),
        "timeout": (one["timeout"].as_string(), "A configured timeout that guards it."),
        "timeout_limit": (number("timeout_ns"), "That timeout in ns."),
        "ratio": (
            cast(one["ratio"].as_string(), Double),
            "Longest stretch over the timeout: near 1 a rank is about to be killed.",
        ),
    }
    sentence = "The longest stretch of each phase of each run, beside each timeout that guards it."
    return _view("v_longest_phases", sentence, columns, lambda one: one)


def _configurations() -> View:
    def number(name: str) -> ColumnElement[int]:
        return cast(_field(name).as_string(), BigInteger)

    return _of_events(
        "v_configurations",
        "What each rank said of the settings of its attempt.",
        (RunConfigured.name,),
        {
            **{
                name: (number(name), _said(RunConfigured, name))
                for name in ("target_step", "checkpoint_interval", "world_size")
            },
            "code_revision": (
                _field("code_revision").as_string(),
                _said(RunConfigured, "code_revision"),
            ),
            "content": (EVENTS.c.fields, "Every setting as JSON; timeouts in ns."),
        },
    )


def _steps() -> View:
    first = _field("first_step").as_integer()
    return _of_events(
        "v_steps",
        f"Completed steps of each rank, one row per stored record of them. {_EXPIRING}",
        (Steps.name, StepsSummary.name),
        {
            "first_step": (cast(first, BigInteger), _said(StepsSummary, "first_step")),
            "last_step": (
                cast(
                    first
                    + case(
                        (
                            EVENTS.c.name == StepsSummary.name,
                            _field("num_steps").as_integer(),
                        ),
                        else_=EVENTS.c.last_sequence - EVENTS.c.first_sequence + 1,
                    )
                    - 1,
                    BigInteger,
                ),
                "Number of the last step.",
            ),
        },
    )


def _faults() -> View:
    code = cast(_field("code").as_string(), BigInteger)
    return _of_events(
        "v_faults",
        "What ranks and machines reported as broken, GPU faults and failed checks included.",
        (Fault.name, GpuFault.name, GpuXid.name, GpuSxid.name, Health.name),
        {
            "event": (EVENTS.c.name, "Wire name of the event."),
            "kind": (
                func.coalesce(_field("kind").as_string(), _field("check").as_string()),
                "Kind of the fault, or name of the health check.",
            ),
            "code": (code, "Xid, SXid or raw number, where it has one."),
            "device": (_field("device").as_string(), _said(GpuFault, "device")),
            "classification": (
                func.coalesce(_field("classification").as_string(), _field("state").as_string()),
                "What it asks for, or the state that a health check found.",
            ),
            "step": (cast(_field("step").as_string(), BigInteger), _said(Fault, "step")),
            "message": (
                func.coalesce(_field("message").as_string(), _field("detail").as_string()),
                "Its words.",
            ),
        },
    )


def _nodes() -> View:
    time = EVENTS.c.anchor + EVENTS.c.monotonic
    broken = (Fault.name, GpuFault.name, GpuXid.name, GpuSxid.name)
    columns: _Columns = {
        "node": (EVENTS.c.node, "Name of the node."),
        "first_seen": (func.min(time), "Its earliest event by its own clock, UTC ns."),
        "last_seen": (func.max(time), "Its newest event by its own clock, UTC ns."),
        "boots": (func.count(distinct(EVENTS.c.boot_id)), "Boots of which events are stored."),
        "runs": (func.count(distinct(EVENTS.c.run)), "Runs that had a rank on it."),
        "events": (func.count(), "Stored events of it and of its ranks."),
        "faults": (
            func.count(case((EVENTS.c.name.in_(broken), literal(1)))),
            "Faults of it, of its GPUs and of its ranks.",
        ),
    }
    return _view(
        "v_nodes",
        "Every node of which an event is stored.",
        columns,
        lambda one: one.where(EVENTS.c.node.is_not(None)).group_by(EVENTS.c.node),
    )


def _stays() -> View:
    time = EVENTS.c.anchor + EVENTS.c.monotonic
    keys = [EVENTS.c[name] for name in ("node", "run", "attempt")]
    columns: _Columns = {
        "node": (EVENTS.c.node, "Name of the node."),
        "run": (EVENTS.c.run, "Identity of the run."),
        "attempt": (EVENTS.c.attempt, "Identity of the attempt."),
        "ranks": (func.count(distinct(EVENTS.c.rank)), "Ranks of the attempt on the node."),
        "first_seen": (func.min(time), "Earliest event of these ranks, UTC ns."),
        "last_seen": (func.max(time), "Newest event of these ranks, UTC ns."),
    }
    return _view(
        "v_stays",
        "From when to when each attempt had ranks on a node.",
        columns,
        lambda one: one.where(*(key.is_not(None) for key in (*keys, EVENTS.c.rank))).group_by(
            *keys
        ),
    )


def _remarks() -> View:
    incident, about = _field("incident").as_string(), _field("about").as_string()
    columns: _Columns = {
        "time": (EVENTS.c.anchor + EVENTS.c.monotonic, "When it was said, UTC ns."),
        "run": (EVENTS.c.run, "Identity of the run; null of a node."),
        "about": (func.coalesce(about, "incident"), _said(Note, "about")),
        "subject": (func.coalesce(_field("subject").as_string(), incident), _said(Note, "subject")),
        "action": (
            case(
                (EVENTS.c.name == IncidentAcknowledged.name, "acknowledged"),
                (EVENTS.c.name == IncidentCorrected.name, "corrected"),
                else_="noted",
            ),
            "noted, acknowledged or corrected.",
        ),
        "author": (_field("author").as_string(), "Who said it."),
        "text": (
            func.nullif(
                func.coalesce(_field("text").as_string(), _field("reason").as_string()), ""
            ),
            "The words, or the reason of a correction.",
        ),
        "cause": (_field("cause").as_string(), "The cause that a correction gives."),
        "labels": (_field("labels").as_string(), "Labels that its subject got, as JSON."),
        "labels_removed": (
            _field("labels_removed").as_string(),
            "Labels that its subject lost, as JSON.",
        ),
    }
    said = (IncidentAcknowledged.name, IncidentCorrected.name)
    return _view(
        "v_remarks",
        "What people said: notes and labels, who took charge, who corrected a cause.",
        columns,
        lambda one: one.where(
            or_(EVENTS.c.name.in_(said), (EVENTS.c.name == Note.name) & about.is_not(None))
        ),
    )


def _results() -> View:
    columns: _Columns = {
        "time": (EVENTS.c.anchor + EVENTS.c.monotonic, "When it was attached, UTC ns."),
        "run": (EVENTS.c.run, "Identity of the run."),
        "attempt": (
            _field("configuration").as_string(),
            _said(ResultAttached, "configuration"),
        ),
        "title": (_field("title").as_string(), _said(ResultAttached, "title")),
        "author": (_field("author").as_string(), _said(ResultAttached, "author")),
        "content": (_field("content").as_string(), _said(ResultAttached, "content")),
    }
    return _view(
        "v_results",
        "Results of benchmarks and drills, with the configurations that produced them.",
        columns,
        lambda one: one.where(EVENTS.c.name == ResultAttached.name),
    )


def _of_events(
    name: str,
    sentence: str,
    names: Sequence[str],
    own: _Columns,
) -> View:
    """Return a view of some kinds of events, with who recorded them and when."""
    told = {field: spec.described.sentence for field, spec in wire.specs(Envelope).items()}
    columns: _Columns = {
        "time": (EVENTS.c.anchor + EVENTS.c.monotonic, _TIME),
        **{field: (EVENTS.c[field], told[field]) for field in ("run", "attempt", "rank", "node")},
        **own,
        "producer": (EVENTS.c.producer, told["producer"]),
        "first_sequence": (EVENTS.c.first_sequence, told["first_sequence"]),
    }
    return _view(name, sentence, columns, lambda one: one.where(EVENTS.c.name.in_(names)))


def _field(name: str) -> Any:
    """Return one field of an event."""
    return cast(EVENTS.c.fields, JSON)[name]


def _said(declaration: type, field: str) -> str:
    return wire.specs(declaration)[field].described.sentence
