"""The post-mortem of one incident over HTTP: everything that is known of it, in one answer."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from headway.collector import schemas
from headway.collector.endpoint import Answer, Endpoint
from headway.collector.fleet_window import price
from headway.collector.incident_api import OneIncident, earlier_incidents, similar_to, whole
from headway.collector.service import Service
from headway.postmortem.composing import Answers, postmortem
from headway.postmortem.gaps import Hole
from headway.postmortem.model import Postmortem, Told
from headway.postmortem.timeline import span_of
from headway.storage.alert_book import BookError

_LOG = logging.getLogger(__name__)

_LATE = 900 * 10**9
"""Time in ns after the closing within which a notice is still about an incident."""
_SECOND = 10**9


def incident_postmortem(service: Service, asked: OneIncident) -> Answer:
    """The post-mortem of one incident: its timeline out of all sources, and what is open."""
    one = whole(service, asked.incident)
    snapshot = service.ledgers.snapshot(one["run"])
    node = one["suspect_node"]
    found = postmortem(
        Answers(
            incident=one,
            report=snapshot.report,
            ledger=snapshot.ledger,
            node=None if node is None else service.node_histories.one(node),
            similar=similar_to(service, one),
            earlier=earlier_incidents(service, one),
            notices=_notices(service, one),
            remarks=_remarks(service, one),
            holes=_holes(service, one["run"]),
            price=price(service),
        )
    )
    return Answer(content=lambda: asdict(found))


def _notices(service: Service, one: Mapping[str, Any]) -> Sequence[Told] | None:
    """Return the notices about the incident's run or node while it lasted, and shortly after.

    None where nobody can say.
    """
    log = service.notice_log
    if log is None:
        return None
    subjects = [f"run {one['run']}", f"run {one['run_name']}"]
    if one["suspect_node"] is not None:
        subjects.append(f"node {one['suspect_node']}")
    last = one["as_of"] if one["closed"] is None else one["closed"]
    try:
        told = log.told(subjects, one["opened"] / _SECOND, (last + _LATE) / _SECOND)
    except BookError as error:
        _LOG.warning("a post-mortem has no notices: %s", error)
        return None
    return [
        Told(
            time=round(each["created"] * _SECOND),
            receiver=each["receiver"],
            status=each["status"],
            headline=each["headline"],
            why=each["why"],
            state=each["state"],
            answer=each["answer"],
            acknowledged_by=each["acknowledged_by"],
            acknowledged_at=None
            if (at := each["acknowledged_at"]) is None
            else round(at * _SECOND),
        )
        for each in told
    ]


def _remarks(service: Service, one: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return what people said of the run, the suspected node and the attempts meanwhile."""
    about = [("run", one["run"]), *(("configuration", name) for name in one["attempt_ids"])]
    if one["suspect_node"] is not None:
        about.append(("node", one["suspect_node"]))
    begin, end = span_of(one)
    return [
        asdict(remark)
        for kind, subject in about
        for remark in service.remarks.about(kind, subject)
        if begin <= remark.time <= end + _LATE
    ]


def _holes(service: Service, run: str) -> Sequence[Hole]:
    return [
        (producer, first, last)
        for (of_run, producer), gaps in service.store.gaps().items()
        if of_run == run
        for first, last in gaps
    ]


POSTMORTEM = schemas.named("Postmortem", schemas.of(Postmortem))
ENDPOINTS = (
    Endpoint.get(
        "/api/v1/incidents/{incident}/postmortem",
        incident_postmortem,
        POSTMORTEM,
    ),
)
