"""What receivers are sent about the training of the drill, checked field by field."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from alert_drill import KEY, PAGES, RUN, Course
from alert_hearing import names
from headway.alerts.catalogue import RULES as CATALOGUE
from headway.alerts.payloads import NOT_YET

SUMMARIES = {
    "RestartBudgetLow": f"restarts left to layer launcher of run {RUN}: [0-9]+",
    "RestartBudgetExhausted": f"layer launcher of run {RUN} has no restart left",
    "PersistentFault": f"[0-9]+ recoveries of run {RUN} in a row broke",
    "RestartLoop": f"[0-9]+ attempts of run {RUN} since a durable checkpoint",
}


def moment(text: str) -> datetime:
    """Return a time of a payload."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def check_alert(course: Course, alert: Mapping[str, Any], source: str) -> None:
    """Check an alert of a webhook's notice field by field."""
    assert set(alert) == {
        *("status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint")
    }
    rule = alert["labels"]["alertname"]
    layer = {"layer": "launcher"} if rule.startswith("RestartBudget") else {}
    # That it loops may be told for a moment after the incident is closed, and with it the cause.
    cause = (
        {} if rule == "RestartLoop" and "cause" not in alert["labels"] else {"cause": "exception"}
    )
    assert alert["labels"] == {
        "alertname": rule,
        "run": RUN,
        **layer,
        "team": "llm",
        "cluster": "east",
        "owner": "ada",
        **cause,
        "severity": "ticket" if rule == "RestartBudgetLow" else "page",
        "area": "training",
        "subject": f"run {RUN}",
    }
    told = alert["annotations"]
    assert set(told) == {
        *("summary", "description", "runbook", "stake", "suspect", "run_url", "incident_url")
    }
    assert re.search(SUMMARIES[rule], told["summary"]), told["summary"]
    assert told["description"] == CATALOGUE[rule].meaning
    assert told["runbook"] == f"docs/runbooks/{rule}.md"
    assert told["run_url"] == f"http://127.0.0.1:8752/run?run={RUN}"
    if rule != "RestartLoop":
        assert re.fullmatch(r"[0-9]+\.[0-9] GPU-hours so far", told["stake"])
        assert re.fullmatch(r"exception, node \S+, rank 1", told["suspect"])
        (incident,) = course.incidents
        assert told["incident_url"].endswith(f"/incident?incident={incident['incident']}")
    start = moment(alert["startsAt"])
    assert course.began < start < course.ended
    if alert["status"] == "firing":
        assert alert["endsAt"] == NOT_YET
    else:
        assert start < moment(alert["endsAt"]) <= course.ended + timedelta(seconds=1)
    assert alert["generatorURL"].startswith(source)
    assert re.fullmatch("[0-9a-f]{16}", alert["fingerprint"])


def check_notice(
    course: Course, body: Mapping[str, Any], *, receiver: str, key: str, outside: str, source: str
) -> None:
    """Check a webhook's notice field by field."""
    alerts = body["alerts"]
    for alert in alerts:
        check_alert(course, alert, source)
    assert {name: value for name, value in body.items() if name != "alerts"} == {
        "version": "4",
        "groupKey": key,
        "truncatedAlerts": 0,
        "status": "firing" if names(body) else "resolved",
        "receiver": receiver,
        "groupLabels": {"subject": f"run {RUN}"},
        "commonLabels": shared([one["labels"] for one in alerts]),
        "commonAnnotations": shared([one["annotations"] for one in alerts]),
        "externalURL": outside,
    }


def shared(tables: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return what all tables have in common."""
    first, *others = tables
    return {k: v for k, v in first.items() if all(one.get(k) == v for one in others)}


def gravities(bodies: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the gravest severity of each notice until the first that says that it is over."""
    found = []
    for body in bodies:
        if not names(body):
            break
        severities = {one["labels"]["severity"] for one in body["alerts"]}
        found.append("page" if "page" in severities else "ticket")
    return found


def check_course(bodies: Sequence[Mapping[str, Any]]) -> None:
    """Check that a ticket became one page, which stayed one and was over once."""
    assert len({body["groupKey"] for body in bodies}) == 1
    assert names(bodies[0]) == {"RestartBudgetLow"}
    told = gravities(bodies)
    assert told == sorted(told, reverse=True)
    assert set(told) == {"ticket", "page"}
    assert [bool(names(body)) for body in bodies] == [True] * (len(bodies) - 1) + [False]


def check_events(events: Sequence[Mapping[str, Any]]) -> None:
    """Check that what PagerDuty is sent is one incident, that becomes graver and is resolved."""
    assert len({one["dedup_key"] for one in events}) == 1
    assert {one["routing_key"] for one in events} == {KEY}
    *triggers, last = events
    assert {one["event_action"] for one in triggers} == {"trigger"}
    assert last["event_action"] == "resolve"
    told = [one["payload"]["severity"] for one in triggers]
    assert told == sorted(told, reverse=True)
    assert set(told) == {"warning", "critical"}
    assert re.search(SUMMARIES["RestartBudgetLow"], triggers[0]["payload"]["summary"])
    assert re.search(
        "|".join(SUMMARIES[rule] for rule in PAGES), triggers[-1]["payload"]["summary"]
    )
