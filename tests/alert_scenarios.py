"""Courses of the published gauges, and the evaluations at which each rule has to fire.

One tick is 15 s. A value of `None` is a series that is gone, as after the end of its target.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from headway.alerts.evaluation import Alert, Labels, Sample, evaluate
from headway.alerts.rule import Rule

TICK = 15
MINUTE = 60 // TICK
HOUR = 60 * MINUTE

Course = Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series over the ticks of a scenario."""

    metric: str
    labels: Mapping[str, str]
    values: Course


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is published, and for each alert of the rule the ticks [first, last) of its firing."""

    name: str
    rule: str
    series: tuple[Series, ...]
    fires: Mapping[Labels, tuple[tuple[int, int], ...]]

    @property
    def ticks(self) -> int:
        """The number of evaluations."""
        return max(len(one.values) for one in self.series)


def course(*parts: tuple[float | None, int]) -> list[float | None]:
    """Return the values of a series from (value, ticks) pairs."""
    return [value for value, ticks in parts for _ in range(ticks)]


def firing(rule: Rule, scenario: Scenario) -> Iterator[Mapping[Labels, Alert]]:
    """Yield what the embedded engine has firing at each tick."""
    alerts: Mapping[tuple[str, Labels], Alert] = {}
    for tick in range(scenario.ticks):
        samples = [
            Sample(metric=one.metric, labels=one.labels, value=value)
            for one in scenario.series
            if tick < len(one.values) and (value := one.values[tick]) is not None
        ]
        alerts = evaluate([rule], samples, alerts, float(tick * TICK))
        yield {one.labels: one for one in alerts.values() if one.state == "firing"}


def stretches(rule: Rule, scenario: Scenario) -> dict[Labels, tuple[tuple[int, int], ...]]:
    """Return the ticks [first, last) at which each alert fires in the embedded engine."""
    found: dict[Labels, list[tuple[int, int]]] = {}
    for tick, alerts in enumerate(firing(rule, scenario)):
        for labels in alerts:
            parts = found.setdefault(labels, [])
            if parts and parts[-1][1] == tick:
                parts[-1] = (parts[-1][0], tick + 1)
            else:
                parts.append((tick, tick + 1))
    return {labels: tuple(parts) for labels, parts in found.items()}


def notation(values: Course) -> str:
    """Return values as promtool's tests write them; what is gone is marked as stale once."""
    words = []
    for value, group in groupby(values):
        number = len(list(group))
        if value is None:
            words.append(" ".join(["stale", *["_"] * (number - 1)]))
        else:
            words.append(f"{value:g}x{number - 1}" if number > 1 else f"{value:g}")
    return " ".join(words)
