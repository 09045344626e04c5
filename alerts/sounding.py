"""An alert of the embedded engine as receivers are told of it: labels and words. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote_plus

from headway.alerts.evaluation import Alert, Sample
from headway.alerts.notices import Told
from headway.alerts.rule import Rule
from headway.alerts.texts import subject, summary

RUN_LABELS = ("team", "cluster", "owner")
"""Labels of a run by which alerts are routed."""
_PEOPLE, _INCIDENT, _PRICE = (
    "headway_run_info",
    "headway_open_incident_gpu_seconds",
    "headway_gpu_hour_price",
)
_HOUR = 3600.0


def asked(rules: Iterable[Rule]) -> frozenset[str]:
    """Return the metrics that rules compare, and those that their alerts' words come from."""
    return frozenset({_PEOPLE, _INCIDENT, _PRICE, *(rule.metric for rule in rules)})


class Surroundings:
    """What the samples say about runs beside the conditions: people, open incidents, the price."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        """Keep what is needed of the samples."""
        self._runs: dict[str, Mapping[str, str]] = {}
        self._incidents: dict[str, Sample] = {}
        self._price: tuple[str, float] | None = None
        for one in samples:
            if one.metric == _PEOPLE:
                self._runs[one.labels["run"]] = one.labels
            elif one.metric == _INCIDENT:
                self._incidents[one.labels["run"]] = one
            elif one.metric == _PRICE:
                self._price = one.labels["currency"], one.value

    def people(self, run: str) -> dict[str, str]:
        """Return a run's labels by which alerts are routed."""
        told = self._runs.get(run, {})
        return {name: told[name] for name in RUN_LABELS if told.get(name)}

    def cause(self, run: str) -> dict[str, str]:
        """Return the cause of the run's open incident as a label, by which alerts are routed."""
        incident = self._incidents.get(run)
        return {} if incident is None else {"cause": incident.labels["cause"]}

    def words(self, run: str, dashboard: str) -> dict[str, str]:
        """Return stake, suspect and link of the run's open incident, empty without one."""
        incident = self._incidents.get(run)
        if incident is None:
            return {"stake": "", "suspect": "", "incident_url": ""}
        labels = incident.labels
        hours = incident.value / _HOUR
        money = "" if self._price is None else f", {hours * self._price[1]:.0f} {self._price[0]}"
        node, rank = labels["suspect_node"], labels["suspect_rank"]
        return {
            "stake": f"{hours:.1f} GPU-hours so far{money}",
            "suspect": labels["cause"]
            + (f", node {node}" if node else "")
            + (f", rank {rank}" if rank else ""),
            "incident_url": f"{dashboard}/incident?incident={labels['incident']}",
        }


def told(alert: Alert, rule: Rule, dashboard: str) -> Told:
    """Return an alert with the labels and annotations that Prometheus would give it."""
    own = dict(alert.labels)
    run = own.get("run", "")
    labels = {
        "alertname": rule.name,
        **own,
        **alert.routed,
        "severity": rule.severity,
        "area": rule.area,
        "subject": subject(rule, own),
    }
    annotations = {
        "summary": summary(rule, alert.value, own),
        "description": rule.meaning,
        "runbook": f"docs/runbooks/{rule.name}.md",
    }
    if "run" in rule.labels:
        annotations |= alert.words
        annotations["run_url"] = f"{dashboard}/run?run={quote_plus(run)}"
    elif "node" in rule.labels:
        annotations["node_url"] = f"{dashboard}/hardware?node={quote_plus(own.get('node', ''))}"
    return Told(
        labels=labels,
        annotations=annotations,
        starts_at=alert.fired_at or alert.active_at,
        ends_at=alert.resolved_at,
    )


def sounding(
    alerts: Iterable[Alert],
    rules: Mapping[str, Rule],
    samples: Sequence[Sample],
    dashboard: str,
) -> list[tuple[Alert, Told]]:
    """Return every alert of a known rule with its words.

    One whose condition holds no more keeps its labels, suspect and link: a run that is over is
    published no more, and its last word is for those who heard the first.
    """
    around = Surroundings(samples)
    base = dashboard.rstrip("/")
    known = (_informed(one, rules[one.rule], around, base) for one in alerts if one.rule in rules)
    return [(one, told(one, rules[one.rule], base)) for one in known]


def _informed(alert: Alert, rule: Rule, around: Surroundings, dashboard: str) -> Alert:
    """Return an alert with what the samples say of its run, while its condition holds."""
    if alert.absent_since is not None or alert.state == "resolved":
        return alert
    run = dict(alert.labels).get("run", "")
    cause = around.cause(run) if rule.is_routed_by_cause else {}
    words = around.words(run, dashboard) if "run" in rule.labels else {}
    return replace(alert, routed={**around.people(run), **cause}, words=words)
