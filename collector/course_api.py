"""The course of a run over HTTP: its ranks, its pace and its settings."""

from dataclasses import asdict, dataclass
from http import HTTPMethod
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, BadQuestion, Endpoint
from headway.collector.run_api import OneRun, true_until
from headway.collector.run_ledger import Snapshot
from headway.collector.schemas import FLAG, INTEGER, NUMBER, TEXT, list_of, object_of, optional
from headway.collector.service import Service
from headway.course.configuration import UNITS, configurations
from headway.course.pace import Pace, pace
from headway.course.rank_lanes import rank_lanes, run_lengths

_SHORTEST, _LONGEST = 1_000_000_000, 30_000_000_000
"""How old, in ns, the rows of a live run may be: one column, but within these bounds."""
MOST_PAIRS = 200_000
"""Most pairs of length and code of an answer; with more, the columns are made wider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part(OneRun):
    """A question about a stretch of a run."""

    start: Annotated[int | None, Asked(sentence="Begin in UTC ns; default: the run's.")] = None
    end: Annotated[int | None, Asked(sentence="End in UTC ns; default: the run's.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRows(_Part):
    """A question about the ranks of one run."""

    columns: Annotated[
        int, Asked(sentence="Most columns, as many as the picture is wide.", lowest=1, highest=4000)
    ] = 1_000
    rows: Annotated[
        int, Asked(sentence="Most rows; neighbours share one beyond.", lowest=1, highest=1000)
    ] = 1_000
    by: Annotated[str, Asked(sentence="What a row stands for.", choices=("rank", "node"))] = "rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceColumns(_Part):
    """A question about how fast one run trained."""

    columns: Annotated[int, Asked(sentence="Most columns of time.", lowest=1, highest=2_000)] = 300


def run_ranks(service: Service, asked: RankRows) -> Answer:
    """What each rank of one run did over time, as pairs of length and code per row.

    Rows of the same course share one entry of `lanes`.
    """
    _check(asked)
    snapshot = service.ledgers.snapshot(asked.run)

    def content() -> dict[str, Any]:
        columns = asked.columns
        while True:
            found = rank_lanes(
                snapshot.ledger,
                asked.start,
                asked.end,
                columns=columns,
                rows=asked.rows,
                by_node=asked.by == "node",
            )
            lanes = run_lengths(found.codes)
            if sum(map(len, lanes)) <= 2 * MOST_PAIRS or columns == 1:
                break
            columns //= 2
        distinct: dict[tuple[int, ...], int] = {}
        places = [distinct.setdefault(tuple(lane), len(distinct)) for lane in lanes]
        return {
            "run": snapshot.report["run"],
            "as_of": snapshot.report["as_of"],
            "start": found.start,
            "end": found.end,
            "columns": found.columns,
            "names": found.names,
            "lanes": [list(lane) for lane in distinct],
            "rows": [
                {
                    "ranks": list(row.ranks),
                    "node": row.node,
                    "lane": place,
                    "steps": row.steps,
                    "times": row.times,
                }
                for row, place in zip(found.lanes, places, strict=True)
            ],
        }

    return Answer(content=content, version=_version(snapshot, asked))


def _version(snapshot: Snapshot, asked: RankRows) -> str:
    """Return a version that changes no more often than a new column of a live run is worth.

    A thousand ranks take seconds to read, and a column of a day's run is longer than a minute.
    """
    if not snapshot.report["provisional"]:
        return snapshot.version
    start = snapshot.report["start"] if asked.start is None else asked.start
    column = max(snapshot.report["as_of"] - start, 0) // asked.columns
    return f"live-{snapshot.report['as_of'] // min(max(column, _SHORTEST), _LONGEST)}"


def run_pace(service: Service, asked: PaceColumns) -> Answer:
    """Step time, wait for data, throughput and loss of one run over time."""
    _check(asked)
    snapshot = service.ledgers.snapshot(asked.run)

    def content() -> dict[str, Any]:
        configured = snapshot.ledger.book.configured
        found = pace(snapshot.ledger, asked.columns, asked.start, asked.end)
        return {
            "as_of": snapshot.report["as_of"],
            "tokens_per_step": None if configured is None else configured.tokens_per_step,
            "columns": [_column(one) for one in found],
        }

    return Answer(content=content, version=snapshot.version, as_of=true_until(service, snapshot))


def run_configuration(service: Service, asked: OneRun) -> Answer:
    """The settings of every attempt of one run, and what each changed."""
    snapshot = service.ledgers.snapshot(asked.run)
    return Answer(
        content=lambda: {
            "as_of": snapshot.report["as_of"],
            "units": dict(UNITS),
            "attempts": [asdict(one) for one in configurations(snapshot.ledger)],
        },
        version=snapshot.version,
        as_of=true_until(service, snapshot),
    )


def _check(asked: _Part) -> None:
    if asked.start is not None and asked.end is not None and asked.end <= asked.start:
        raise BadQuestion(
            f"end {asked.end} is not after start {asked.start}", "Times are UTC nanoseconds."
        )


def _column(one: Pace) -> dict[str, Any]:
    return {**asdict(one), "steps_per_second": one.steps_per_second}


_RUN = "/api/v1/runs/{run}"
_SETTING = object_of(field=TEXT, name=optional(TEXT), value=schemas.ANYTHING)
_LANE = object_of(
    ranks=list_of(INTEGER),
    node=optional(TEXT),
    lane=INTEGER,
    steps=FLAG,
    times=schemas.map_of(INTEGER),
)
ENDPOINTS = (
    Endpoint(
        method=HTTPMethod.GET,
        path=f"{_RUN}/ranks",
        handler=run_ranks,
        result=object_of(
            run=TEXT,
            as_of=INTEGER,
            start=INTEGER,
            end=INTEGER,
            columns=INTEGER,
            names=list_of(TEXT),
            lanes=list_of(list_of(INTEGER)),
            rows=list_of(_LANE),
        ),
    ),
    Endpoint(
        method=HTTPMethod.GET,
        path=f"{_RUN}/pace",
        handler=run_pace,
        result=object_of(
            as_of=INTEGER,
            tokens_per_step=optional(INTEGER),
            columns=list_of(schemas.both(schemas.of(Pace), object_of(steps_per_second=NUMBER))),
        ),
    ),
    Endpoint(
        method=HTTPMethod.GET,
        path=f"{_RUN}/configuration",
        handler=run_configuration,
        result=object_of(
            as_of=INTEGER,
            units=schemas.map_of(TEXT),
            attempts=list_of(
                object_of(
                    attempt=TEXT,
                    number=INTEGER,
                    told=FLAG,
                    settings=list_of(_SETTING),
                    changes=list_of(schemas.CHANGE),
                )
            ),
        ),
    ),
)
