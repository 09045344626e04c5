"""The embedded engine: which alerts are pending or firing, from look to look at the metrics.

It follows Prometheus' rule manager (`rules/alerting.go`, 2.42) in what `for` and `keep_firing_for`
mean, so that both engines fire at the same evaluations of the same series. Pure: the state goes in
and comes out, and times are given, in seconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from headway.alerts.rule import Rule

Labels = tuple[tuple[str, str], ...]
"""Names and values of labels, sorted by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value of one series of a metric."""

    metric: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert of a rule: since when its condition holds, when it fired and when it was over.

    `absent_since` is when the condition stopped holding while the alert is kept firing. `routed`
    are labels that decide whom it reaches, `words` what is said of the run's open incident, as they
    were when its condition held last.
    """

    rule: str
    labels: Labels
    state: Literal["pending", "firing", "resolved"]
    value: float
    active_at: float
    fired_at: float | None = None
    absent_since: float | None = None
    resolved_at: float | None = None
    routed: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, Labels]:
        """What stays the same about an alert however its value moves."""
        return self.rule, self.labels


Alerts = Mapping[tuple[str, Labels], Alert]


def values(rule: Rule, samples: Iterable[Sample]) -> dict[Labels, float]:
    """Return the rule's metric by the labels that count, the largest where several series agree."""
    found: dict[Labels, float] = {}
    for sample in samples:
        if sample.metric != rule.metric:
            continue
        if any(sample.labels.get(name, "") != value for name, value in rule.only.items()):
            continue
        labels = tuple(
            (name, sample.labels[name]) for name in sorted(rule.labels) if sample.labels.get(name)
        )
        before = found.get(labels)
        if before is None or before != before or sample.value > before:
            found[labels] = sample.value
    return found


def evaluate(
    rules: Sequence[Rule], samples: Sequence[Sample], before: Alerts, now: float
) -> dict[tuple[str, Labels], Alert]:
    """Return the alerts at `now`; what was resolved before that is left out.

    An alert whose condition stops holding while it is pending is forgotten; a firing one stays for
    the rule's `keep` seconds. One of a rule that is gone resolves at once.
    """
    by_metric: dict[str, list[Sample]] = {}
    for sample in samples:
        by_metric.setdefault(sample.metric, []).append(sample)
    after: dict[tuple[str, Labels], Alert] = {}
    for rule in rules:
        for labels, value in values(rule, by_metric.get(rule.metric, ())).items():
            if rule.holds(value):
                alert = _held(rule, labels, value, before.get((rule.name, labels)), now)
                after[alert.key] = alert
    kept = {rule.name: rule.keep for rule in rules}
    for key, alert in before.items():
        if key not in after and alert.state == "firing":
            after[key] = _over(alert, kept.get(alert.rule, 0), now)
    return after


def _held(rule: Rule, labels: Labels, value: float, before: Alert | None, now: float) -> Alert:
    if before is None or before.state == "resolved":
        before = Alert(rule=rule.name, labels=labels, state="pending", value=value, active_at=now)
    # A clock that was ahead would otherwise count from a time that is still to come.
    begun = min(before.active_at, now)
    alert = replace(before, value=value, absent_since=None, active_at=begun)
    if alert.state == "pending" and now - alert.active_at >= rule.hold:
        alert = replace(alert, state="firing", fired_at=now)
    return alert


def _over(alert: Alert, keep: float, now: float) -> Alert:
    since = now if alert.absent_since is None else min(alert.absent_since, now)
    if now - since < keep:
        return replace(alert, absent_since=since)
    return replace(alert, state="resolved", resolved_at=now, absent_since=None)
