"""The catalogue as a rule file for Prometheus, in the syntax of 2.42.

A run's team, cluster and owner come from `headway_run_info`, so that Alertmanager can route by
them; an alert of a run without that series keeps its own labels. Annotations ask Prometheus for
the open incident of the run when they are written.
"""

import json
from collections.abc import Iterable, Iterator, Mapping

from headway.alerts.rule import Rule
from headway.alerts.sounding import RUN_LABELS
from headway.alerts.texts import series, subject_template, summary_template

INTERVAL = 15
"""Seconds between two evaluations."""
_INCIDENT = "headway_open_incident_gpu_seconds"


def _first(query: str, words: str) -> str:
    """Return a template that writes words about what a query about the run first gives, if any."""
    asked = "{{ with printf `" + query + "` $labels.run | query }}"
    return asked + "{{ with first . }}" + words + "{{ end }}{{ end }}"


_OF_RUN = _INCIDENT + "{run=%q}"
_CAUSE = _first(_OF_RUN, '{{ label "cause" . }}')
_SUSPECT = _first(
    _OF_RUN,
    '{{ label "cause" . }}{{ with label "suspect_node" . }}, node {{ . }}{{ end }}'
    '{{ with label "suspect_rank" . }}, rank {{ . }}{{ end }}',
)
_STAKE = _first(
    f"sum({_OF_RUN}) / 3600", '{{ printf "%.1f" (value .) }} GPU-hours so far'
) + _first(
    f"sum({_OF_RUN}) / 3600 * on () group_left (currency)"
    " max by (currency) (headway_gpu_hour_price)",
    ', {{ printf "%.0f" (value .) }} {{ label "currency" . }}',
)
_INCIDENT_LINK = _first(_OF_RUN, 'BASE/incident?incident={{ label "incident" . }}')


def rule_file(groups: Mapping[str, Iterable[Rule]], dashboard: str) -> str:
    """Return the rule file; `dashboard` is the address of the dashboard that links lead to."""
    lines = [
        "# Written by `headway alerts export prometheus` for Prometheus 2.42 or newer.",
        "groups:",
    ]
    for name, rules in groups.items():
        lines += [f"  - name: headway-{name}", f"    interval: {INTERVAL}s", "    rules:"]
        for rule in rules:
            lines += (f"      {line}".rstrip() for line in _rule(rule, dashboard.rstrip("/")))
    return "\n".join(lines) + "\n"


def expression(rule: Rule) -> str:
    """Return the comparison in PromQL, with the run's labels beside its own."""
    by = f"by ({', '.join(rule.labels)}) " if rule.labels else ""
    compared = f"max {by}({series(rule)}) {rule.comparison} {rule.threshold:g}"
    if "run" not in rule.labels:
        return compared
    told = ", ".join(RUN_LABELS)
    # Of one run only one: two collectors that disagree would make the rule fail for every run.
    info = f"topk by (run) (1, max by (run, {told}) (headway_run_info))"
    return f"({compared}) * on (run) group_left ({told}) {info} or on (run) ({compared})"


def _rule(rule: Rule, dashboard: str) -> Iterator[str]:
    yield f"# Threshold {rule.threshold:g}. {rule.change}"
    yield f"- alert: {rule.name}"
    yield f"  expr: {json.dumps(expression(rule))}"
    if rule.hold:
        yield f"  for: {rule.hold}s"
    if rule.keep:
        yield f"  keep_firing_for: {rule.keep}s"
    yield "  labels:"
    yield f"    severity: {rule.severity}"
    yield f"    area: {rule.area}"
    yield f"    subject: {json.dumps(subject_template(rule))}"
    if rule.is_routed_by_cause:
        yield f"    cause: {json.dumps(_CAUSE)}"
    yield "  annotations:"
    for name, text in annotation_templates(rule, dashboard).items():
        yield f"    {name}: {json.dumps(text)}"


def annotation_templates(rule: Rule, dashboard: str) -> dict[str, str]:
    """Return the annotations of a rule's alerts, as templates of Prometheus."""
    texts = {
        "summary": summary_template(rule),
        "description": rule.meaning,
        "runbook": f"docs/runbooks/{rule.name}.md",
    }
    if "run" in rule.labels:
        texts |= {
            "stake": _STAKE,
            "suspect": _SUSPECT,
            "run_url": f"{dashboard}/run?run={{{{ $labels.run | urlquery }}}}",
            "incident_url": _INCIDENT_LINK.replace("BASE", dashboard),
        }
    elif "node" in rule.labels:
        texts["node_url"] = f"{dashboard}/hardware?node={{{{ $labels.node | urlquery }}}}"
    return texts
