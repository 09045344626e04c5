"""The site's routes and receivers as a configuration of Alertmanager, 0.25 or newer.

Secrets stay where they are: Alertmanager reads files itself, and what is in the environment cannot
be written here without being shown, so that it is refused.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from headway.alerts.maintenance import DAYS, Maintenance
from headway.alerts.receivers import Apprise, Email, Log, PagerDuty, Receiver, Slack, Webhook
from headway.alerts.routing import (
    GROUP_BY,
    GROUP_INTERVAL,
    GROUP_WAIT,
    REPEAT_INTERVAL,
    Route,
)
from headway.alerts.rule import SAME, Rule
from headway.alerts.site import Site

_SEVERITY = (
    '{{ $gravest := "info" }}{{ range .Alerts.Firing }}'
    '{{ if eq .Labels.severity "page" }}{{ $gravest = "critical" }}'
    '{{ else if and (eq .Labels.severity "ticket") (ne $gravest "critical") }}'
    '{{ $gravest = "warning" }}{{ end }}{{ end }}{{ $gravest }}'
)
"""PagerDuty's severity: that of the gravest alert that fires, be it beside lesser ones."""
_HEADLINE = (
    '{{ $said := "" }}{{ range .Alerts.Firing }}{{ if eq .Labels.severity "page" }}'
    "{{ if not $said }}{{ $said = .Annotations.summary }}{{ end }}{{ end }}{{ end }}"
    "{{ range .Alerts }}{{ if not $said }}{{ $said = .Annotations.summary }}{{ end }}{{ end }}"
    '{{ if eq .Status "resolved" }}over: {{ end }}{{ $said }}'
    "{{ $listed := .Alerts }}{{ if .Alerts.Firing }}{{ $listed = .Alerts.Firing }}{{ end }}"
    "{{ if gt (len $listed) 1 }} (one of {{ len $listed }}){{ end }}"
)
"""The first line for people: what the gravest alert says, since several have no words in common."""
_DETAILS = (
    "{{ range .Alerts.Firing }}{{ .Labels.alertname }}: {{ .Annotations.summary }}"
    "{{ with .Annotations.suspect }}; {{ . }}{{ end }}"
    "{{ with .Annotations.stake }}; {{ . }}{{ end }}"
    "{{ with .Annotations.incident_url }} {{ . }}{{ end }}\n{{ end }}"
    "{{ range .Alerts.Resolved }}{{ .Labels.alertname }}: over\n{{ end }}"
)


class ExportError(ValueError):
    """A receiver or window that Alertmanager cannot have; says what to do instead."""


def configuration(site: Site) -> str:
    """Return the configuration as YAML, one inhibition per pair of rules that say the same.

    Raises:
        ExportError: a secret in the environment, or a receiver that only the embedded notifier has.
    """
    windows = [_interval(one) for one in site.maintenance.values()]
    whole: dict[str, Any] = {
        "route": _root(site.root),
        "receivers": [_receiver(one) for one in site.receivers.values()],
        "inhibit_rules": list(_inhibitions(site.rules)),
    }
    if windows:
        whole["time_intervals"] = windows
    head = "# Written by `headway alerts export alertmanager` for Alertmanager 0.25 or newer.\n"
    return head + _yaml(whole) + "\n"


def _root(root: Route) -> dict[str, Any]:
    return {
        "receiver": root.receiver,
        "group_by": list(GROUP_BY),
        "group_wait": f"{GROUP_WAIT if root.group_wait is None else root.group_wait}s",
        "group_interval": _seconds(root.group_interval, GROUP_INTERVAL),
        "repeat_interval": _seconds(root.repeat_interval, REPEAT_INTERVAL),
        "routes": [_route(one) for one in root.routes],
    }


def _route(route: Route) -> dict[str, Any]:
    if route.escalate_to is not None:
        raise ExportError(
            f"Alertmanager cannot escalate to {route.escalate_to!r}: it knows no acknowledgement; "
            "let the pager escalate, or use the embedded notifier"
        )
    told: dict[str, Any] = {"matchers": [str(one) for one in route.matchers]}
    if route.receiver is not None:
        told["receiver"] = route.receiver
    if route.goes_on:
        told["continue"] = True
    if route.mute:
        told["mute_time_intervals"] = list(route.mute)
    for name in ("group_wait", "group_interval", "repeat_interval"):
        value = getattr(route, name)
        if value is not None:
            told[name] = f"{value}s"
    if route.routes:
        told["routes"] = [_route(one) for one in route.routes]
    return told


def _seconds(value: int | None, default: int) -> str:
    return f"{default if value is None else value}s"


def _receiver(receiver: Receiver) -> dict[str, Any]:
    match receiver:
        case PagerDuty():
            options: dict[str, Any] = {
                "routing_key_file": _file(receiver, receiver.key),
                "url": f"{receiver.url.rstrip('/')}/v2/enqueue",
                "severity": _SEVERITY,
                "description": _HEADLINE,
            }
            return {"name": receiver.name, "pagerduty_configs": [options]}
        case Slack():
            options = {
                "api_url_file": _file(receiver, receiver.url),
                "send_resolved": True,
                "title": _HEADLINE,
                "text": _DETAILS,
            }
            if receiver.channel is not None:
                options["channel"] = receiver.channel
            return {"name": receiver.name, "slack_configs": [options]}
        case Webhook():
            if receiver.url.startswith(("file:", "env:")):
                raise ExportError(
                    f"receiver {receiver.name!r}: Alertmanager 0.25 takes a webhook's address "
                    "only in its configuration; write it there, or use the embedded notifier"
                )
            options = {"url": receiver.url, "send_resolved": True}
            if receiver.token is not None:
                file = _file(receiver, receiver.token)
                options["http_config"] = {"authorization": {"credentials_file": file}}
            return {"name": receiver.name, "webhook_configs": [options]}
        case Email():
            options = {
                "to": receiver.to,
                "from": receiver.sender,
                "smarthost": f"{receiver.host}:{receiver.port}",
                "require_tls": receiver.tls,
                "send_resolved": True,
            }
            if receiver.user is not None:
                options["auth_username"] = receiver.user
            if receiver.password is not None:
                options["auth_password_file"] = _file(receiver, receiver.password)
            return {"name": receiver.name, "email_configs": [options]}
        case Log():
            return {"name": receiver.name}
        case Apprise():
            raise ExportError(
                f"receiver {receiver.name!r}: Alertmanager has no apprise; use a kind that it has, "
                "or the embedded notifier"
            )
    raise AssertionError(receiver)


def _file(receiver: Receiver, place: str) -> str:
    if place.startswith("file:"):
        return place.removeprefix("file:")
    raise ExportError(
        f"receiver {receiver.name!r}: {place} is in the environment, which Alertmanager cannot "
        "read; keep the secret in a file and write file:PATH"
    )


def _inhibitions(rules: Mapping[str, Rule]) -> Iterator[dict[str, Any]]:
    """Yield who silences whom: for the run that both are about, and of a node all its runs."""
    for rule in rules.values():
        targets = [name for name in rule.inhibits if name in rules]
        if not targets:
            continue
        yield {
            "source_matchers": [f'alertname="{rule.name}"'],
            "target_matchers": [f'alertname=~"{"|".join(targets)}"'],
            "equal": list(SAME),
        }


def _interval(window: Maintenance) -> dict[str, Any]:
    if window.begin is not None:
        raise ExportError(
            f"maintenance {window.name!r}: Alertmanager has no stretch of the calendar; "
            "add a silence with amtool, or use the embedded notifier"
        )
    zone = str(window.zone)
    days = [DAYS[day] for day in window.days]
    after = [DAYS[(day + 1) % 7] for day in window.days]
    parts = [(days, window.first_minute, window.last_minute)]
    if window.first_minute >= window.last_minute:
        parts = [(days, window.first_minute, 24 * 60)]
        parts += [(after, 0, window.last_minute)] if window.last_minute else []
    return {
        "name": window.name,
        "time_intervals": [
            {
                "weekdays": listed,
                "times": [{"start_time": _clock(first), "end_time": _clock(last)}],
                "location": zone,
            }
            for listed, first, last in parts
        ],
    }


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def _yaml(value: Any, depth: int = 0) -> str:
    """Return plain tables, lists and scalars as YAML."""
    pad = "  " * depth
    if isinstance(value, dict) and value:
        return "\n".join(
            f"{pad}{key}:" + (_nested(one, depth + 1) if one else f" {json.dumps(one)}")
            if isinstance(one, dict | list)
            else f"{pad}{key}: {json.dumps(one)}"
            for key, one in value.items()
        )
    if isinstance(value, list) and value:
        return "\n".join(f"{pad}- {_yaml(one, depth + 1).lstrip()}" for one in value)
    return f"{pad}{json.dumps(value)}"


def _nested(value: Any, depth: int) -> str:
    return "\n" + _yaml(value, depth)
