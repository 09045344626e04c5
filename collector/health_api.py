"""How the collector and those who send to it are, over HTTP."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, Endpoint
from headway.collector.run_ledger import Snapshot
from headway.collector.schemas import list_of, map_of, object_of, optional
from headway.collector.service import Service
from headway.events import AgentCost

_LIBRARIES = ("headway", "duckdb", "starlette", "uvicorn")
_MOST_RECORDING = 100
_LAGS = ("p50", "p99", "longest")


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthQuestion:
    """A question about the collector."""


def health(service: Service, asked: HealthQuestion) -> Answer:
    """How the collector is: what arrived, what became of it, and what is missing."""
    committer = service.committer
    lags = committer.lags.quantiles()
    recoveries, lost = service.recoveries.counts()
    heard = service.node_clocks.newest()
    found = {
        "time": service.clock(),
        "as_of": heard or None,
        "version": service.store.version,
        "versions": {library: version(library) for library in _LIBRARIES},
        "records": committer.counts(),
        "requests": dict(service.intake.requests),
        "bytes_in_flight": service.intake.size,
        "lag_ns": dict(zip(_LAGS, (round(lag) for lag in lags.values()), strict=False)),
        "open_gaps": service.store.num_gaps,
        "failing": committer.failure,
        "recoveries": recoveries,
        "lost_records": lost,
        "runs": len(service.ledgers.runs()),
        "nodes": len(service.ledgers.nodes()),
    }
    return Answer(content=lambda: found)


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityQuestion:
    """A question about what is wrong with the data of runs."""

    limit: Annotated[int, Asked(sentence="Most runs.", lowest=1, highest=1_000)] = 100


def quality(service: Service, asked: QualityQuestion) -> Answer:
    """Runs whose data has gaps or contradictions, the worst first; and who sends what version."""
    fleet = service.ledgers.fleet()

    def content() -> dict[str, Any]:
        rows = sorted(_faulty(fleet.snapshots), key=lambda row: -row["dropped_events"])
        return {
            "as_of": fleet.as_of,
            "runs": rows[: asked.limit],
            "of": len(rows),
            "versions": _versions(fleet.snapshots),
            "recording": _recording(fleet.snapshots, service),
        }

    return Answer(content=content, version=fleet.version, as_of=fleet.as_of)


def _recording(snapshots: Iterable[Snapshot], service: Service) -> list[Mapping[str, Any]]:
    """Return what recording a step takes of each run that told it, the newest told first."""
    names = {one.report["run"]: one.report["run_name"] for one in snapshots}
    return [
        {
            "run": run,
            "run_name": names.get(run),
            "steps": cost.steps,
            "median_ns": cost.median,
            "highest_ns": cost.highest,
        }
        for run, cost in islice(service.own_costs.steps().items(), _MOST_RECORDING)
    ]


def _faulty(snapshots: Iterable[Snapshot]) -> Iterator[dict[str, Any]]:
    for snapshot in snapshots:
        report = snapshot.report
        problems = {one["kind"]: one["count"] for one in report["problems"]}
        if report["dropped_events"] or problems:
            yield {
                "run": report["run"],
                "run_name": report["run_name"],
                "state": report["state"],
                "last_event": report["last_event"],
                "dropped_events": report["dropped_events"],
                "problems": problems,
            }


def _versions(snapshots: Iterable[Snapshot]) -> list[Mapping[str, Any]]:
    """Return the runs by the versions that they say they use, the most used first."""
    runs: dict[tuple[str, str], int] = {}
    for snapshot in snapshots:
        for library, number in snapshot.versions.items():
            runs[library, str(number)] = runs.get((library, str(number)), 0) + 1
    return [
        {"library": library, "version": number, "runs": count}
        for (library, number), count in sorted(
            runs.items(), key=lambda item: (item[0][0], -item[1])
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SendersQuestion:
    """A question about the nodes that were heard of lately."""

    limit: Annotated[int, Asked(sentence="Most nodes.", lowest=1, highest=10_000)] = 1_000


def senders(service: Service, asked: SendersQuestion) -> Answer:
    """Nodes of which something was heard within a day, the longest silent first."""
    now = service.clock()
    clocks = {clock.node: clock for clock in service.node_clocks.current(now)}
    heard = sorted(service.node_clocks.heard(now).items(), key=lambda item: item[1])
    found = [
        {
            "node": node,
            "heard": time,
            "clock_offset_ns": clocks[node].offset if node in clocks else None,
            "clock_error_ns": clocks[node].error if node in clocks else None,
            **_agent(service.own_costs.agent(node)),
        }
        for node, time in heard
    ]
    newest = service.node_clocks.newest() or None
    return Answer(
        content=lambda: {"as_of": newest, "nodes": found[: asked.limit], "of": len(found)}
    )


def _agent(cost: AgentCost | None) -> dict[str, Any]:
    return {
        "agent_cpu": None if cost is None else cost.cpu,
        "agent_memory": None if cost is None else cost.memory,
        "agent_version": None if cost is None else cost.version,
    }


ENDPOINTS = (
    Endpoint.get(
        "/api/v1/health",
        health,
        object_of(
            time=schemas.INTEGER,
            as_of=optional(schemas.INTEGER),
            version=schemas.TEXT,
            versions=map_of(schemas.TEXT),
            records=map_of(schemas.INTEGER),
            requests=map_of(schemas.INTEGER),
            bytes_in_flight=schemas.INTEGER,
            lag_ns=map_of(schemas.INTEGER),
            open_gaps=schemas.INTEGER,
            failing=optional(schemas.TEXT),
            recoveries=schemas.INTEGER,
            lost_records=schemas.INTEGER,
            runs=schemas.INTEGER,
            nodes=schemas.INTEGER,
        ),
    ),
    Endpoint.get(
        "/api/v1/health/runs",
        quality,
        object_of(
            as_of=optional(schemas.INTEGER),
            runs=list_of(
                object_of(
                    run=schemas.TEXT,
                    run_name=optional(schemas.TEXT),
                    state=schemas.TEXT,
                    last_event=optional(schemas.INTEGER),
                    dropped_events=schemas.INTEGER,
                    problems=map_of(schemas.INTEGER),
                )
            ),
            of=schemas.INTEGER,
            versions=list_of(
                object_of(library=schemas.TEXT, version=schemas.TEXT, runs=schemas.INTEGER)
            ),
            recording=list_of(
                object_of(
                    run=schemas.TEXT,
                    run_name=optional(schemas.TEXT),
                    steps=schemas.INTEGER,
                    median_ns=schemas.INTEGER,
                    highest_ns=schemas.INTEGER,
                )
            ),
        ),
    ),
    Endpoint.get(
        "/api/v1/health/nodes",
        senders,
        object_of(
            as_of=optional(schemas.INTEGER),
            nodes=list_of(
                object_of(
                    node=schemas.TEXT,
                    heard=schemas.INTEGER,
                    clock_offset_ns=optional(schemas.INTEGER),
                    clock_error_ns=optional(schemas.INTEGER),
                    agent_cpu=optional(schemas.NUMBER),
                    agent_memory=optional(schemas.INTEGER),
                    agent_version=optional(schemas.TEXT),
                )
            ),
            of=schemas.INTEGER,
        ),
    ),
)
