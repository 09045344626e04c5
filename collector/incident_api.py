"""Incidents over HTTP: read them, take charge of one, correct its cause.

What a person says becomes an event of the run, stored before it is answered; the rule's own verdict
stays beside it.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from http import HTTPMethod
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, Endpoint, NotKnown
from headway.collector.fleet_window import price, price_object
from headway.collector.paging import Cursor, Limit, page
from headway.collector.remarks import INCIDENT
from headway.collector.run_api import RunFilter, chosen
from headway.collector.schemas import list_of, object_of, optional
from headway.collector.service import Service
from headway.events import CAUSES, Event, IncidentAcknowledged, IncidentCorrected
from headway.fleet.cordon import cordon_commands
from headway.incidents.alike import Group, group_of, groups, similar
from headway.incidents.finding import WEEK

_MOST_SIMILAR = 20
"""Incidents that are told to be like one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFilter:
    """Which incidents are meant."""

    run: Annotated[str | None, Asked(sentence="Only those of this run, by its id or its name.")] = (
        None
    )
    state: Annotated[
        str | None, Asked(sentence="Only those in this state.", choices=("open", "closed"))
    ] = None
    cause: Annotated[
        str | None, Asked(sentence="Only those of this cause.", choices=tuple(CAUSES))
    ] = None
    label: Annotated[
        tuple[str, ...],
        Asked(sentence="Only those of runs with this label, as NAME=VALUE.", example="team=vision"),
    ] = ()
    node: Annotated[str | None, Asked(sentence="Only those that suspect this node.")] = None
    group: Annotated[
        str | None, Asked(sentence="Only those of this group of one cause and signature.")
    ] = None
    since: Annotated[int | None, Asked(sentence="Only those opened at it or later, UTC ns.")] = None
    until: Annotated[int | None, Asked(sentence="Only those opened before it, UTC ns.")] = None
    last: Annotated[
        int | None,
        Asked(
            sentence="Only those opened so many ns or less before the newest sign of a run that is "
            "meant.",
            lowest=1,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOfIncidents(IncidentFilter):
    """A question about many incidents."""

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
    """Incidents of all runs or of one, the newest first, with what all that are meant cost."""
    as_of = service.ledgers.fleet().as_of

    def content() -> dict[str, Any]:
        meant = [*_meant(service, asked)]
        shown, after = page(meant, lambda item: (-item[1]["opened"], item[1]["incident"]), asked)
        opened_by_gpu = cache(service.node_histories.incidents_of_gpus)
        return {
            "incidents": [_of(report, one, opened_by_gpu) for report, one in shown],
            "totals": _totals([one for _, one in meant]),
            "price": price_object(price(service)),
            "as_of": as_of,
            "next": after,
        }

    return Answer(content=content, version=_version(service, asked), as_of=as_of)


def incident_groups(service: Service, asked: IncidentFilter) -> Answer:
    """Incidents by cause and signature, the group that one was last in first."""
    as_of = service.ledgers.fleet().as_of

    def content() -> dict[str, Any]:
        meant = [*_meant(service, asked)]
        return {
            "groups": [asdict(group) for group in groups(_with_run(*pair) for pair in meant)],
            "totals": _totals([one for _, one in meant]),
            "price": price_object(price(service)),
            "as_of": as_of,
        }

    return Answer(content=content, version=_version(service, asked), as_of=as_of)


def incident(service: Service, asked: OneIncident) -> Answer:
    """One incident with its evidence, and what people said about it."""
    found = whole(service, asked.incident)
    return Answer(content=lambda: found)


def similar_incidents(service: Service, asked: OneIncident) -> Answer:
    """Incidents of any run that share the signature, the GPU or the node, most alike first."""

    def content() -> dict[str, Any]:
        alike = similar_to(service, found_incident(service, asked.incident))
        opened_by_gpu = cache(service.node_histories.incidents_of_gpus)
        reports = {known.run: known.report for known in service.ledgers.fleet().snapshots}
        found = [
            {**_of(reports[other["run"]], other, opened_by_gpu), "shares": shares}
            for other, shares in alike[:_MOST_SIMILAR]
        ]
        return {"incidents": found, "count": len(alike)}

    return Answer(content=content, version=service.ledgers.fleet().version)


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
    run = found_incident(service, identity)["run"]
    service.own_events.record(service.committer, run, event)
    found = _whole(service, *_find(service, identity, run))
    return Answer(content=lambda: found)


def found_incident(service: Service, identity: str) -> dict[str, Any]:
    """Return one incident as its run's report tells it, with its run.

    Raises:
        NotKnown: there is no such incident.
    """
    return _with_run(*_find(service, identity))


def whole(service: Service, identity: str) -> dict[str, Any]:
    """Return one incident with all that one page says of it.

    Raises:
        NotKnown: there is no such incident.
    """
    return _whole(service, *_find(service, identity))


def similar_to(
    service: Service, one: Mapping[str, Any]
) -> list[tuple[Mapping[str, Any], list[str]]]:
    """Return the incidents of any run that are like one, with what they have in common."""
    return similar(one, (_with_run(*pair) for pair in _meant(service, IncidentFilter())))


def earlier_incidents(service: Service, one: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return those before one that suspected its node, or its rank in the same run; newest first.

    What suspected its GPU suspected its node.
    """
    rank, node = one["suspect_rank"], one["suspect_node"]
    found = [
        _with_run(report, other)
        for report, other in _meant(service, IncidentFilter(until=one["opened"]))
        if (node is not None and other["suspect_node"] == node)
        or (rank is not None and report["run"] == one["run"] and other["suspect_rank"] == rank)
    ]
    return sorted(found, key=lambda other: -other["opened"])


def _version(service: Service, asked: IncidentFilter) -> str:
    """Return what changes whenever the incidents that are meant may."""
    of_run = None if asked.run is None else service.ledgers.snapshot(asked.run).version
    return f"{service.ledgers.fleet().version} {of_run}"


def _meant(
    service: Service, asked: IncidentFilter
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Give the incidents that are meant, each after the report of its run."""
    if asked.run is None:
        snapshots = chosen(service, RunFilter(label=asked.label))
    else:
        snapshots = [service.ledgers.snapshot(asked.run)]
    since = asked.since
    if asked.last is not None:
        lived = (one.report["end"] or one.report["as_of"] for one in snapshots)
        since = max(max(lived, default=0) - asked.last, since or 0)
    for snapshot in snapshots:
        report = snapshot.report
        yield from (
            (report, one)
            for one in _all(report)
            if _is_meant(one, asked) and (since is None or one["opened"] >= since)
        )


def _is_meant(one: dict[str, Any], asked: IncidentFilter) -> bool:
    return (
        (asked.state is None or one["state"] == asked.state)
        and (asked.cause is None or one["cause"] == asked.cause)
        and (asked.node is None or one["suspect_node"] == asked.node)
        and (asked.until is None or one["opened"] < asked.until)
        and (asked.group is None or group_of(one) == asked.group)
    )


def _totals(meant: Sequence[dict[str, Any]]) -> dict[str, int]:
    return {
        "incidents": len(meant),
        "open": sum(one["state"] == "open" for one in meant),
        "lost_ns": sum(one["lost_ns"] for one in meant),
        "lost_gpu_ns": sum(one["lost_gpu_ns"] for one in meant),
    }


def _find(
    service: Service, identity: str, run: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the report of a run and one incident of it."""
    ledgers = service.ledgers
    for snapshot in ledgers.snapshots() if run is None else [ledgers.snapshot(run)]:
        for one in _all(snapshot.report):
            if one["incident"] == identity:
                return snapshot.report, one
    raise NotKnown(
        f"no incident {identity!r} is known here",
        "List those of a run with `headway incidents RUN`.",
    )


def _all(report: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report["incidents"]
    return found


def _team(report: Mapping[str, Any]) -> str | None:
    team = report["labels"].get("team")
    return None if team is None else str(team)


def _with_run(report: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
    return {**one, "run": report["run"], "run_name": report["run_name"]}


def _of(
    report: Mapping[str, Any],
    one: Mapping[str, Any],
    opened_by_gpu: Callable[[], Mapping[tuple[str, str], Sequence[int]]],
) -> dict[str, Any]:
    """Return an incident with its run, and how often its GPU was to blame in any run's week."""
    repeats = None
    if one["gpu_repeats"] is not None:
        times = opened_by_gpu().get((one["suspect_node"], one["suspect_gpu"]), ())
        repeats = bisect_right(times, one["opened"]) - bisect_right(times, one["opened"] - WEEK)
    return {
        **_with_run(report, one),
        "team": _team(report),
        "group": group_of(one),
        "gpu_repeats_in_all_runs": repeats,
    }


def _whole(service: Service, report: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
    """Return an incident with all that one page says of it."""
    remarks, identity, node = service.remarks, one["incident"], one["suspect_node"]
    cordon: Sequence[str] = ()
    if node is not None:
        reason = f"headway: incident {identity}, {one['cause'].replace('_', ' ')}"
        scheduler = service.node_histories.scheduler(report["run"])
        cordon = cordon_commands(node, scheduler, reason)
    began = {attempt["attempt"]: attempt["start"] for attempt in report["attempt_list"]}
    return {
        **_of(report, one, service.node_histories.incidents_of_gpus),
        "tries": [{**tried, "began": began.get(tried["attempt"])} for tried in one["tries"]],
        "as_of": report["as_of"],
        "price": price_object(price(service)),
        "history": [asdict(remark) for remark in remarks.about(INCIDENT, identity)],
        "labels": remarks.labels(INCIDENT, identity),
        "cordon": list(cordon),
    }


_TOTALS = object_of(
    incidents=schemas.INTEGER,
    open=schemas.INTEGER,
    lost_ns=schemas.INTEGER,
    lost_gpu_ns=schemas.INTEGER,
)
_PRICE = optional(object_of(per_gpu_hour=schemas.NUMBER, currency=schemas.TEXT))
_SIMILAR = schemas.both(schemas.INCIDENT_OF_RUN, object_of(shares=list_of(schemas.TEXT)))
_ONE = "/api/v1/incidents/{incident}"
ENDPOINTS = (
    Endpoint.get(
        "/api/v1/incidents",
        incidents,
        object_of(
            incidents=list_of(schemas.INCIDENT_OF_RUN),
            totals=_TOTALS,
            price=_PRICE,
            as_of=schemas.INTEGER,
            next=schemas.NEXT,
        ),
    ),
    Endpoint.get(
        "/api/v1/incident_groups",
        incident_groups,
        object_of(
            groups=list_of(schemas.of(Group)),
            totals=_TOTALS,
            price=_PRICE,
            as_of=schemas.INTEGER,
        ),
    ),
    Endpoint(method=HTTPMethod.GET, path=_ONE, handler=incident, result=schemas.ONE_INCIDENT),
    Endpoint(
        method=HTTPMethod.GET,
        path=f"{_ONE}/similar",
        handler=similar_incidents,
        result=object_of(incidents=list_of(_SIMILAR), count=schemas.INTEGER),
    ),
    Endpoint(
        method=HTTPMethod.POST,
        path=f"{_ONE}/cause",
        handler=correct,
        result=schemas.ONE_INCIDENT,
    ),
    Endpoint(
        method=HTTPMethod.POST,
        path=f"{_ONE}/ack",
        handler=acknowledge,
        result=schemas.ONE_INCIDENT,
    ),
)
