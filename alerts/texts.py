"""What an alert says, in words for the embedded engine and as templates for Prometheus.

Both come from one text of the rule with `{value}` and `{label}` in it, and give the same words.
"""

import json
import string
from collections.abc import Mapping

from headway.alerts.rule import Rule

_TEMPLATES: Mapping[str, str] = {
    "count": '{{ printf "%.0f" $value }}',
    "times": '{{ printf "%.1f" $value }}',
    "share": "{{ $value | humanizePercentage }}",
    "time": "{{ $value | humanizeDuration }}",
}


def summary(rule: Rule, value: float, labels: Mapping[str, str]) -> str:
    """Return the summary of an alert; a label that it lacks is empty, as in Prometheus."""
    known = {name: labels.get(name, "") for name in rule.labels}
    return rule.summary.format(value=shown(rule, value), **known)


def summary_template(rule: Rule) -> str:
    """Return the summary as a template of Prometheus."""
    known = {name: "{{ $labels." + name + " }}" for name in rule.labels}
    return rule.summary.format(value=_TEMPLATES[rule.form], **known)


def subject(rule: Rule, labels: Mapping[str, str]) -> str:
    """Return what an alert is about: its run, else its node, else Headway itself."""
    for name in ("run", "node"):
        if name in rule.labels:
            return f"{name} {labels.get(name, '')}"
    return "headway"


def subject_template(rule: Rule) -> str:
    """Return the subject as a template of Prometheus."""
    return subject(rule, {name: "{{ $labels." + name + " }}" for name in rule.labels})


def shown(rule: Rule, value: float) -> str:
    """Return a value of the rule's metric, or its threshold, for people."""
    match rule.form:
        case "count":
            return f"{value:.0f}"
        case "times":
            return f"{value:.1f}"
        case "share":
            return f"{value * 100:.4g}%"
        case "time":
            return _duration(value)


def condition(rule: Rule) -> str:
    """Return the comparison as people read it, such as `headway_x{window="1h"} > 30%`."""
    return f"{series(rule)} {rule.comparison} {shown(rule, rule.threshold)}"


def series(rule: Rule) -> str:
    """Return the series that a rule compares, as PromQL selects them."""
    only = ",".join(f"{name}={json.dumps(value)}" for name, value in rule.only.items())
    return rule.metric + (f"{{{only}}}" if only else "")


def fields_of(text: str) -> set[str]:
    """Return the names in braces in a text."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def _duration(seconds: float) -> str:
    """Return seconds as Prometheus' `humanizeDuration` writes one second or more."""
    whole = int(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d {hours}h {minutes}m {rest}s"
    if hours:
        return f"{hours}h {minutes}m {rest}s"
    return f"{minutes}m {rest}s" if minutes else f"{seconds:.4g}s"
