"""What a rule of the catalogue is: one comparison of one published gauge, and whom it is for.

A rule is data. Prometheus (`headway.alerts.prometheus_rules`) and the embedded engine
(`headway.alerts.evaluation`) read the same declarations, so that they mean the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headway.metrics import METRICS

Comparison = Literal[">", ">=", "<", "<=", "=="]
Severity = Literal["page", "ticket", "info", "none"]
SEVERITIES: Mapping[Severity, str] = {
    "page": "somebody is woken",
    "ticket": "somebody looks at it in working hours",
    "info": "it is written down",
    "none": "it only shows that alerting works",
}
"""Every severity and what it asks for, the gravest first."""
AREAS: Mapping[str, str] = {
    "training": "who runs the training",
    "infrastructure": "who runs the machines",
    "headway": "who runs Headway itself",
}
"""Who can mend what a rule finds, when nobody is named for the run itself."""
SAME = ("run", "layer")
"""Labels in which two alerts must agree for one to silence the other; both may lack them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule; times in seconds.

    `labels` are what tells one alert of the rule from another; every other label of the series is
    folded away by the largest value, so that a new instance of the collector is no new alert.
    `change` says when its threshold should be another one, `look` and `act` are its runbook.
    `inhibits` names rules that say less about the same thing and are silent while it fires.

    Raises:
        ValueError: a metric that is not published, or a label it does not have.
    """

    name: str
    metric: str
    comparison: Comparison
    threshold: float
    form: Literal["count", "times", "share", "time"]
    labels: tuple[str, ...]
    severity: Severity
    area: str
    summary: str
    meaning: str
    change: str
    look: tuple[str, ...]
    act: tuple[str, ...]
    only: Mapping[str, str] = field(default_factory=dict)
    hold: int = 0
    keep: int = 300
    inhibits: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        metric = METRICS.get(self.metric)
        if metric is None:
            raise ValueError(f"rule {self.name}: no metric {self.metric!r} is published")
        for label in (*self.labels, *self.only):
            if label not in metric.labels:
                raise ValueError(
                    f"rule {self.name}: {self.metric} has no label {label!r}; "
                    f"it has {', '.join(metric.labels) or 'none'}"
                )
        if self.area not in AREAS:
            raise ValueError(f"rule {self.name}: area {self.area!r}; known: {', '.join(AREAS)}")

    @property
    def is_routed_by_cause(self) -> bool:
        """Whether the cause of the run's open incident is a label of its alerts.

        With another label it is another alert to Prometheus, whose time would begin anew with each
        incident: so only where the condition need not hold for a time.
        """
        return "run" in self.labels and self.hold == 0

    def holds(self, value: float) -> bool:
        """Return whether a value makes the rule true; NaN never does."""
        limit = self.threshold
        match self.comparison:
            case ">":
                return value > limit
            case ">=":
                return value >= limit
            case "<":
                return value < limit
            case "<=":
                return value <= limit
            case "==":
                return value == limit
