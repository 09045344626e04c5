"""Runs over HTTP: the list with its filters, and everything about one of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPMethod
from typing import Annotated, Any

import pyarrow  # type: ignore[import-untyped]  # ships no types

from headway.collector import schemas
from headway.collector.curve import step_curve
from headway.collector.endpoint import Answer, Asked, BadQuestion, Endpoint
from headway.collector.paging import Cursor, Limit, page
from headway.collector.run_ledger import Snapshot
from headway.collector.schemas import list_of, object_of
from headway.collector.service import Service
from headway.report import interval_objects

STATES = ("running", "completed", "failed", "stopped", "abandoned")


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """A question about one run."""

    run: Annotated[str, Asked(sentence="Id of the run, or its name for the newest of it.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOfRun(OneRun):
    """A question about one run that is answered in pages."""

    limit: Limit = 100
    cursor: Cursor = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are meant."""

    name: Annotated[str | None, Asked(sentence="Only runs of this name.")] = None
    state: Annotated[str | None, Asked(sentence="Only runs in this state.", choices=STATES)] = None
    label: Annotated[
        tuple[str, ...],
        Asked(sentence="Only runs with this label, as NAME=VALUE.", example="team=research"),
    ] = ()
    since: Annotated[int | None, Asked(sentence="Only runs that lived after it, UTC ns.")] = None
    until: Annotated[int | None, Asked(sentence="Only runs that began before it, UTC ns.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOfRuns(RunFilter):
    """A question about many runs."""

    limit: Limit = 100
    cursor: Cursor = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve(OneRun):
    """A question about the course of one run."""

    points: Annotated[
        int, Asked(sentence="Most points of the curve.", lowest=2, highest=100_000)
    ] = 2_000


def chosen(service: Service, asked: RunFilter) -> list[Snapshot]:
    """Return the runs that are meant.

    Raises:
        BadQuestion: a label that is no pair.
    """
    return meant(service.ledgers.fleet().snapshots, asked)


def meant(snapshots: Sequence[Snapshot], asked: RunFilter) -> list[Snapshot]:
    """Return the runs that are meant among some.

    Raises:
        BadQuestion: a label that is no pair.
    """
    wanted = []
    for given in asked.label:
        name, equals, value = given.partition("=")
        if not equals:
            raise BadQuestion(
                f"label must be NAME=VALUE, got {given!r:.80}", "Write team=research."
            )
        wanted.append((name, value))
    return [one for one in snapshots if _meant(one.summary, asked, wanted)]


def _meant(summary: Mapping[str, Any], asked: RunFilter, labels: Sequence[tuple[str, str]]) -> bool:
    end = summary["end"] or summary["as_of"]
    return (
        (asked.name is None or summary["run_name"] == asked.name)
        and (asked.state is None or summary["state"] == asked.state)
        and (asked.since is None or end >= asked.since)
        and (asked.until is None or summary["start"] <= asked.until)
        and all(str(summary["labels"].get(name)) == value for name, value in labels)
    )


def runs(service: Service, asked: PageOfRuns) -> Answer:
    """Summaries of runs, the newest first; none is older than `as_of`."""
    fleet = service.ledgers.fleet()

    def content() -> dict[str, Any]:
        summaries = [snapshot.summary for snapshot in meant(fleet.snapshots, asked)]
        found, after = page(summaries, lambda one: (-one["start"], one["run"]), asked)
        return {"as_of": fleet.as_of, "runs": found, "next": after}

    return Answer(content=content, version=fleet.version, as_of=fleet.as_of)


def run_report(service: Service, asked: OneRun) -> Answer:
    """The whole report of one run."""
    return _of_run(service, asked, lambda snapshot: snapshot.report)


def run_intervals(service: Service, asked: OneRun) -> Answer:
    """The ledger's intervals of one run, in order of time; their lengths sum to its own."""
    snapshot = service.ledgers.snapshot(asked.run)

    def rows() -> list[dict[str, Any]]:
        return interval_objects(snapshot.ledger.intervals())

    def table() -> pyarrow.Table:
        flat = [{**row, "amounts": list(row["amounts"].items())} for row in rows()]
        return pyarrow.Table.from_pylist(flat, schema=_INTERVALS)

    return Answer(content=lambda: {"intervals": rows()}, table=table, version=snapshot.version)


_INTERVALS = pyarrow.schema(
    [
        ("start", pyarrow.int64()),
        ("end", pyarrow.int64()),
        ("category", pyarrow.string()),
        ("part", pyarrow.string()),
        ("attempt", pyarrow.string()),
        ("first_step", pyarrow.int64()),
        ("last_step", pyarrow.int64()),
        ("amounts", pyarrow.map_(pyarrow.string(), pyarrow.int64())),
    ]
)


def run_steps(service: Service, asked: Curve) -> Answer:
    """The step curve of one run: which step was reached when, thinned."""
    return _of_run(
        service,
        asked,
        lambda snapshot: {"points": step_curve(snapshot.ledger.intervals(), asked.points)},
    )


def run_attempts(service: Service, asked: PageOfRun) -> Answer:
    """The attempts of one run, in order."""
    return _part(service, asked, "attempt_list", "attempts")


def run_checkpoints(service: Service, asked: PageOfRun) -> Answer:
    """The checkpoints of one run, in the order in which they were scheduled."""
    return _part(service, asked, "checkpoints", "checkpoints")


def _of_run(
    service: Service, asked: OneRun, content: Callable[[Snapshot], Mapping[str, Any]]
) -> Answer:
    snapshot = service.ledgers.snapshot(asked.run)
    return Answer(
        content=lambda: content(snapshot),
        version=snapshot.version,
        as_of=true_until(service, snapshot),
    )


def true_until(service: Service, snapshot: Snapshot) -> int:
    """Return the time in UTC ns up to which what is said of a run is true: now, once it is over."""
    return snapshot.as_of if snapshot.report["provisional"] else service.clock()


def _part(service: Service, asked: PageOfRun, part: str, name: str) -> Answer:
    """Return a page of one list of a report, whose items are told apart by their place."""
    snapshot = service.ledgers.snapshot(asked.run)

    def content() -> dict[str, Any]:
        items: list[tuple[int, Any]] = list(enumerate(snapshot.report[part]))
        shown, after = page(items, lambda item: item[:1], asked)
        return {name: [value for _, value in shown], "next": after}

    return Answer(content=content, version=snapshot.version)


def _get(
    path: str, handler: Callable[[Service, Any], Answer], bulk: bool = False, **result: Any
) -> Endpoint:
    return Endpoint(
        method=HTTPMethod.GET, path=path, handler=handler, result=object_of(**result), bulk=bulk
    )


_RUN = "/api/v1/runs/{run}"
ENDPOINTS = (
    _get(
        "/api/v1/runs",
        runs,
        as_of=schemas.INTEGER,
        runs=list_of(schemas.SUMMARY),
        next=schemas.NEXT,
    ),
    Endpoint(
        method=HTTPMethod.GET, path=f"{_RUN}/report", handler=run_report, result=schemas.REPORT
    ),
    _get(f"{_RUN}/intervals", run_intervals, bulk=True, intervals=list_of(schemas.INTERVAL)),
    _get(f"{_RUN}/steps", run_steps, points=list_of(schemas.CURVE_POINT)),
    _get(
        f"{_RUN}/attempts",
        run_attempts,
        attempts=list_of(schemas.ATTEMPT),
        next=schemas.NEXT,
    ),
    _get(
        f"{_RUN}/checkpoints",
        run_checkpoints,
        checkpoints=list_of(schemas.CHECKPOINT),
        next=schemas.NEXT,
    ),
)
