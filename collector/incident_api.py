"""Incidents over HTTP: read them, take charge of one, correct its cause.

What a person says becomes an event of the run, stored before it is answered; the rule's own verdict
stays beside it.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPMethod
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, Endpoint, NotKnown
from headway.collector.paging import Cursor, Limit, page
from headway.collector.schemas import list_of, object_of
from headway.collector.service import Service
from headway.events import CAUSES, Event, IncidentAcknowledged, IncidentCorrected
from headway.incidents.finding import WEEK


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOfIncidents:
    """A question about many incidents."""

    run: Annotated[str | None, Asked(sentence="Only those of this run, by its id or its name.")] = (
        None
    )
    state: Annotated[
        str | None, Asked(sentence="Only those in this state.", choices=("open", "closed"))
    ] = None
    cause: Annotated[
        str | None, Asked(sentence="Only those of this cause.", choices=tuple(CAUSES))
    ] = None
    node: Annotated[str | None, Asked(sentence="Only those that suspect this node.")] = None
    since: Annotated[int | None, Asked(sentence="Only those opened at it or later, UTC ns.")] = None
    until: Annotated[int | None, Asked(sentence="Only those opened before it, UTC ns.")] = None
    limit: Limit = 100
    cursor: Cursor = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OneIncident:
    """A question about one incident."""

    incident: Annotated[str, Asked(sentence="Identity of the incident.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement(OneIncident):
    """Somebody takes charge of an incident."""

    author: Annotated[str, Asked(sentence="Say who you are.", example="Ada")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction(Acknowledgement):
    """Somebody gives an incident another cause."""

    cause: Annotated[str, Asked(sentence="The cause that it had.", choices=tuple(CAUSES))]
    reason: Annotated[str | None, Asked(sentence="Say why in words, or leave it out.")] = None


def incidents(service: Service, asked: PageOfIncidents) -> Answer:
    """Incidents of all runs or of one, the newest first."""
    ledgers = service.ledgers
    snapshots = ledgers.snapshots() if asked.run is None else [ledgers.snapshot(asked.run)]
    meant = [
        (snapshot.report, one)
        for snapshot in snapshots
        for one in _all(snapshot.report)
        if _meant(one, asked)
    ]
    shown, after = page(meant, lambda item: (-item[1]["opened"], item[1]["incident"]), asked)
    opened_by_gpu = cache(service.node_histories.incidents_of_gpus)
    found = [_of(report, one, opened_by_gpu) for report, one in shown]
    return Answer(content=lambda: {"incidents": found, "next": after})


def incident(service: Service, asked: OneIncident) -> Answer:
    """One incident with its evidence."""
    found = _find(service, asked.incident)
    return Answer(content=lambda: found)


def correct(service: Service, asked: Correction) -> Answer:
    """Record the cause that a person gives an incident; answers with it as it now reads."""
    event = IncidentCorrected(
        incident=asked.incident,
        cause=asked.cause,
        author=asked.author.strip(),
        reason=None if asked.reason is None else asked.reason.strip(),
    )
    return _recorded(service, asked.incident, event)


def acknowledge(service: Service, asked: Acknowledgement) -> Answer:
    """Record who takes charge of an incident; answers with it as it now reads."""
    event = IncidentAcknowledged(incident=asked.incident, author=asked.author.strip())
    return _recorded(service, asked.incident, event)


def _recorded(service: Service, identity: str, event: Event) -> Answer:
    run = _find(service, identity)["run"]
    service.own_events.record(service.committer, run, event)
    found = _find(service, identity, run)
    return Answer(content=lambda: found)


def _meant(one: dict[str, Any], asked: PageOfIncidents) -> bool:
    return (
        (asked.state is None or one["state"] == asked.state)
        and (asked.cause is None or one["cause"] == asked.cause)
        and (asked.node is None or one["suspect_node"] == asked.node)
        and (asked.since is None or one["opened"] >= asked.since)
        and (asked.until is None or one["opened"] < asked.until)
    )


def _find(service: Service, identity: str, run: str | None = None) -> dict[str, Any]:
    ledgers = service.ledgers
    for snapshot in ledgers.snapshots() if run is None else [ledgers.snapshot(run)]:
        for one in _all(snapshot.report):
            if one["incident"] == identity:
                return _of(snapshot.report, one, service.node_histories.incidents_of_gpus)
    raise NotKnown(
        f"no incident {identity!r} is known here",
        "List those of a run with `headway incidents RUN`.",
    )


def _all(report: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report["incidents"]
    return found


def _of(
    report: dict[str, Any],
    one: dict[str, Any],
    opened_by_gpu: Callable[[], Mapping[tuple[str, str], Sequence[int]]],
) -> dict[str, Any]:
    """Return an incident with its run, and how often its GPU was to blame in any run's week."""
    repeats = None
    if one["gpu_repeats"] is not None:
        times = opened_by_gpu().get((one["suspect_node"], one["suspect_gpu"]), ())
        repeats = bisect_right(times, one["opened"]) - bisect_right(times, one["opened"] - WEEK)
    return {
        **one,
        "run": report["run"],
        "run_name": report["run_name"],
        "gpu_repeats_in_all_runs": repeats,
    }


_ONE = "/api/v1/incidents/{incident}"
ENDPOINTS = (
    Endpoint(
        method=HTTPMethod.GET,
        path="/api/v1/incidents",
        handler=incidents,
        result=object_of(incidents=list_of(schemas.INCIDENT_OF_RUN), next=schemas.NEXT),
    ),
    Endpoint(method=HTTPMethod.GET, path=_ONE, handler=incident, result=schemas.INCIDENT_OF_RUN),
    Endpoint(
        method=HTTPMethod.POST,
        path=f"{_ONE}/cause",
        handler=correct,
        result=schemas.INCIDENT_OF_RUN,
    ),
    Endpoint(
        method=HTTPMethod.POST,
        path=f"{_ONE}/ack",
        handler=acknowledge,
        result=schemas.INCIDENT_OF_RUN,
    ),
)
