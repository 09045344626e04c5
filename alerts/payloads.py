"""A notice in the form that each kind of receiver takes. Pure.

Sources: Alertmanager's webhook, version 4 (`notify/webhook`, 0.25); PagerDuty's Events API, version
2, with its limits of 255 characters for a key and 1,024 for a summary; Slack's incoming webhooks.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any

from headway.alerts.notices import Notice, Told
from headway.alerts.receivers import Email

NOT_YET = "0001-01-01T00:00:00Z"
"""End of an alert that fires, as Alertmanager writes it."""
_SUMMARY, _KEY = 1024, 255
_PAGERDUTY = {"page": "critical", "ticket": "warning", "info": "info", "none": "info"}
_LINKS = {
    "incident_url": "Incident",
    "run_url": "Run",
    "node_url": "Node",
    "grafana_url": "Grafana",
}


def webhook(notice: Notice, external_url: str) -> dict[str, Any]:
    """Return what Alertmanager's webhook would send, so that its receivers work unchanged."""
    listed = [*notice.firing, *notice.resolved]
    return {
        "version": "4",
        "groupKey": notice.key,
        "truncatedAlerts": 0,
        "status": notice.status,
        "receiver": notice.receiver,
        "groupLabels": {"subject": notice.subject},
        "commonLabels": common(one.labels for one in listed),
        "commonAnnotations": common(one.annotations for one in listed),
        "externalURL": external_url,
        "alerts": [_alert(one, external_url) for one in listed],
    }


def posted(alert: Told, external_url: str) -> dict[str, Any]:
    """Return an alert as Alertmanager's `/api/v2/alerts` takes it."""
    told = _alert(alert, external_url)
    if alert.ends_at is None:
        del told["endsAt"]
    return {name: told[name] for name in told if name not in ("status", "fingerprint")}


def pagerduty(notice: Notice, routing_key: str, external_url: str) -> dict[str, Any]:
    """Return an event for PagerDuty; a resolved notice closes what its key opened."""
    told: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "trigger" if notice.status == "firing" else "resolve",
        "dedup_key": notice.key[:_KEY],
    }
    if notice.status == "resolved":
        return told
    links = [{"href": href, "text": text} for text, href in links_of(notice.firing)]
    first = notice.firing[0]
    return told | {
        "payload": {
            "summary": headline(notice)[:_SUMMARY],
            "source": notice.subject,
            "severity": _PAGERDUTY.get(notice.severity, "info"),
            "timestamp": stamp(min(one.starts_at for one in notice.firing)),
            "component": first.labels.get("run") or first.labels.get("node") or "headway",
            "group": first.labels.get("cluster") or first.labels.get("team") or "headway",
            "class": first.labels["alertname"],
            "custom_details": {
                one.labels["alertname"]: {**one.annotations, "labels": dict(one.labels)}
                for one in notice.firing
            },
        },
        "links": links,
        "client": "Headway",
        "client_url": external_url,
    }


def slack(notice: Notice, channel: str | None) -> dict[str, Any]:
    """Return a message for Slack."""
    listed = links_of(notice.firing or notice.resolved)
    links = " | ".join(f"<{href}|{text}>" for text, href in listed)
    mark = ":white_check_mark:" if notice.status == "resolved" else ":rotating_light:"
    lines = [f"{mark} *{_escaped(headline(notice))}*", *(map(_escaped, details(notice)))]
    told: dict[str, Any] = {"text": "\n".join([*lines, *([links] if links else [])])}
    return told if channel is None else told | {"channel": channel}


def mail(notice: Notice, receiver: Email) -> EmailMessage:
    """Return an e-mail; one thread per key."""
    message = EmailMessage()
    message["Subject"] = " ".join(f"[{notice.status}] {headline(notice)}".split())[:200]
    message["From"], message["To"] = receiver.sender, receiver.to
    message["References"] = f"<{notice.key}@headway>"
    links = [f"{text}: {href}" for text, href in links_of(notice.firing or notice.resolved)]
    message.set_content("\n".join([headline(notice), "", *details(notice), "", *links]) + "\n")
    return message


def headline(notice: Notice) -> str:
    """Return the first line for people: the gravest alert, and how many more there are."""
    listed = notice.firing or notice.resolved
    if not listed:
        return f"{notice.subject}: {notice.why}"
    words = listed[0].annotations.get("summary") or listed[0].labels["alertname"]
    more = f" (and {len(listed) - 1} more)" if len(listed) > 1 else ""
    return f"{'over: ' if notice.status == 'resolved' else ''}{words}{more}"


def details(notice: Notice) -> list[str]:
    """Return what else people are told, a line each."""
    lines = []
    for one in notice.firing:
        words = [one.annotations.get(name) for name in ("suspect", "stake")]
        said = "; ".join(word for word in words if word)
        lines.append(
            f"{one.labels['alertname']}: {one.annotations.get('summary', '')}"
            + (f" [{said}]" if said else "")
        )
    lines += [f"{one.labels['alertname']}: over" for one in notice.resolved]
    return [*lines, f"Told because {notice.why}."]


def links_of(alerts: Iterable[Told]) -> list[tuple[str, str]]:
    """Return the links of alerts as (text, address), each once."""
    found: dict[str, str] = {}
    for one in alerts:
        for name, text in _LINKS.items():
            if one.annotations.get(name):
                found.setdefault(one.annotations[name], text)
    return [(text, href) for href, text in found.items()]


def common(tables: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return what all tables say alike."""
    listed = list(tables)
    return {
        name: value
        for name, value in (listed[0].items() if listed else ())
        if all(one.get(name) == value for one in listed)
    }


def stamp(seconds: float) -> str:
    """Return a time as Alertmanager writes it."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _alert(one: Told, external_url: str) -> dict[str, Any]:
    return {
        "status": "firing" if one.ends_at is None else "resolved",
        "labels": dict(one.labels),
        "annotations": dict(one.annotations),
        "startsAt": stamp(one.starts_at),
        "endsAt": NOT_YET if one.ends_at is None else stamp(one.ends_at),
        "generatorURL": f"{external_url}/alerts?rule={one.labels['alertname']}",
        "fingerprint": one.fingerprint,
    }


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
