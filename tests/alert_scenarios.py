"""Courses of the published gauges, and the evaluations at which each rule has to fire.

One tick is 15 s. A value of `None` is a series that is gone, as after the end of its target; `GAP`
is a scrape that brought nothing: Prometheus goes on with the value before for a while.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any, Final

from headway.alerts.catalogue import GROUPS
from headway.alerts.evaluation import Alert, Labels, Sample, evaluate
from headway.alerts.prometheus_rules import rule_file
from headway.alerts.rule import Rule

TICK = 15
MINUTE = 60 // TICK
HOUR = 60 * MINUTE
LOOKBACK = 5 * MINUTE
"""Ticks for which Prometheus goes on with a value that nothing follows."""


class Absent(Enum):
    """How a value may be missing without an end of its series."""

    GAP = "gap"


GAP: Final = Absent.GAP
Value = float | None | Absent
Course = Sequence[Value]


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


def course(*parts: tuple[Value, int]) -> list[Value]:
    """Return the values of a series from (value, ticks) pairs."""
    return [value for value, ticks in parts for _ in range(ticks)]


def seen(values: Course, ticks: int) -> Iterator[float | None]:
    """Yield what Prometheus sees of a series at each tick."""
    newest, age = None, 0
    for tick in range(ticks):
        value = values[tick] if tick < len(values) else GAP
        if isinstance(value, Absent):
            age += 1
        else:
            newest, age = value, 0
        yield newest if age < LOOKBACK else None


def looks(rule: Rule, scenario: Scenario) -> Iterator[Mapping[Labels, Alert]]:
    """Yield what the embedded engine has pending or firing at each tick."""
    alerts: Mapping[tuple[str, Labels], Alert] = {}
    courses = zip(*(seen(one.values, scenario.ticks) for one in scenario.series), strict=True)
    for tick, values in enumerate(courses):
        samples = [
            Sample(metric=one.metric, labels=one.labels, value=value)
            for one, value in zip(scenario.series, values, strict=True)
            if value is not None
        ]
        alerts = evaluate([rule], samples, alerts, float(tick * TICK))
        yield {one.labels: one for one in alerts.values() if one.state != "resolved"}


def firing(rule: Rule, scenario: Scenario) -> Iterator[Mapping[Labels, Alert]]:
    """Yield what the embedded engine has firing at each tick."""
    for alerts in looks(rule, scenario):
        yield {labels: one for labels, one in alerts.items() if one.state == "firing"}


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
        elif isinstance(value, Absent):
            words.append(" ".join(["_"] * number))
        elif not isfinite(value):
            words.append(" ".join([f"{value:g}"] * number))
        else:
            words.append(f"{value:g}x{number - 1}" if number > 1 else f"{value:g}")
    return " ".join(words)


def selector(series: Series) -> str:
    """Return the name of a series as promtool's tests write it."""
    return f"{series.metric}{written(series.labels)}"


def written(labels: Mapping[str, str]) -> str:
    """Return labels as PromQL writes them."""
    return "{" + ", ".join(f"{name}={json.dumps(value)}" for name, value in labels.items()) + "}"


def promtool(folder: Path, tests: Sequence[Mapping[str, Any]]) -> str:
    """Return what promtool complains of when it tries the shipped rules, or nothing."""
    rules = folder / "rules.yml"
    rules.write_text(rule_file(GROUPS, "http://127.0.0.1:8752"), encoding="utf-8")
    whole = {"rule_files": [str(rules)], "evaluation_interval": f"{TICK}s", "tests": tests}
    file = folder / "tests.yml"
    file.write_text(json.dumps(whole), encoding="utf-8")  # JSON is YAML
    told = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    return "" if told.returncode == 0 else told.stdout + told.stderr or "it failed"


def promtool_test(scenario: Scenario, checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a scenario as one of promtool's tests; `checks` say what is to be found."""
    return {
        "name": f"{scenario.rule}: {scenario.name}",
        "interval": f"{TICK}s",
        "input_series": [
            {"series": selector(one), "values": notation(one.values)} for one in scenario.series
        ],
        "promql_expr_test": checks,
    }
