"""Series that nobody thought of: both engines have the same alerts at the same evaluations."""

import tempfile
from collections.abc import Iterator, Mapping
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy, composite

from alert_scenarios import (
    GAP,
    LOOKBACK,
    TICK,
    Course,
    Scenario,
    Series,
    Value,
    looks,
    promtool,
    promtool_test,
    written,
)
from headway.alerts.catalogue import RULES
from headway.alerts.rule import Rule
from headway.metrics import METRICS

KNOWN = {
    "run": ("r", "s", ""),
    "node": ("n1", "n2"),
    "layer": ("launcher", "in_process"),
    "window": ("1h", "24h", ""),
}
SOME = ("a", "b", "")
TOGETHER = 12
"""Scenarios of one start of promtool, which takes as long as they do."""


def values(rule: Rule) -> SearchStrategy[Value]:
    """Return values about a threshold, those that are no numbers, and both ways to be missing."""
    edge = rule.threshold
    usual = (edge, edge - 1, edge + 1, edge - 0.001, edge + 0.001, 0.0)
    odd = (float("nan"), float("inf"), float("-inf"), None, GAP)
    return st.sampled_from([*usual, *usual, *odd])


@composite
def courses(draw: DrawFn, rule: Rule) -> Course:
    """Draw parts about as long as a rule waits, keeps its alert, or as Prometheus looks back."""
    edges = {rule.hold // TICK, rule.keep // TICK, LOOKBACK}
    ticks = sorted({1, 2, 3, *(edge + more for edge in edges for more in (-1, 0, 1))} - {-1, 0})
    parts = draw(st.lists(st.tuples(values(rule), st.sampled_from(ticks)), min_size=1, max_size=6))
    whole = [value for value, number in parts for _ in range(number)]
    # Whether a value of exactly five minutes ago is still seen differs between its versions.
    cut = (
        list(group)[: LOOKBACK - 1 if is_gap else None]
        for is_gap, group in groupby(whole, key=lambda one: one is GAP)
    )
    return [*chain.from_iterable(cut), None]


@composite
def series(draw: DrawFn, rule: Rule) -> tuple[Series, ...]:
    """Draw a rule's metric under several labels, with who a run belongs to and what broke it."""
    names = (*METRICS[rule.metric].labels, "instance")
    labels = st.fixed_dictionaries({name: st.sampled_from(KNOWN.get(name, SOME)) for name in names})
    found = [
        Series(metric=rule.metric, labels=one, values=draw(courses(rule)))
        for one in draw(st.lists(labels, min_size=1, max_size=4, unique_by=identity))
    ]
    if "run" in rule.labels:
        length = max(len(one.values) for one in found)
        found += draw(
            st.lists(
                told_of_runs(rule, length), max_size=3, unique_by=lambda one: identity(one.labels)
            )
        )
    return tuple(found)


def identity(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return what tells a series from others: a label without a value is none."""
    return tuple((name, value) for name, value in sorted(labels.items()) if value)


@composite
def told_of_runs(draw: DrawFn, rule: Rule, length: int) -> Series:
    """Draw an owner or an open incident of a run.

    To Prometheus an alert of another owner is another alert: its time would begin anew.
    """
    run = draw(st.sampled_from(KNOWN["run"]))
    begin = 0 if rule.hold else draw(st.integers(0, length - 1))
    values: Course = [*[None] * begin, *[1.0] * (length - begin)]
    if draw(st.booleans()):
        labels = {"run": run, "team": "llm", "cluster": "east", "owner": "ada"}
        return Series(metric="headway_run_info", labels=labels, values=values)
    cause = draw(st.sampled_from(("killed", "hang")))
    labels = {"run": run, "incident": cause, "cause": cause, "suspect_node": "", "suspect_rank": ""}
    return Series(metric="headway_open_incident_gpu_seconds", labels=labels, values=values)


@composite
def scenarios(draw: DrawFn) -> Scenario:
    rule = RULES[draw(st.sampled_from(sorted(RULES)))]
    return Scenario(name="drawn", rule=rule.name, series=draw(series(rule)), fires={})


def states(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Yield checks of every alert and its state at each evaluation, as the embedded engine has."""
    rule = RULES[scenario.rule]
    by = ", ".join((*rule.labels, "alertstate"))
    for tick, alerts in enumerate(looks(rule, scenario)):
        found: list[Mapping[str, str]] = [
            {**dict(labels), "alertstate": one.state} for labels, one in alerts.items()
        ]
        yield {
            "expr": f'group by ({by}) (ALERTS{{alertname="{rule.name}"}})',
            "eval_time": f"{tick * TICK}s",
            "exp_samples": [{"labels": written(labels), "value": 1} for labels in found],
        }


@pytest.mark.slow
@settings(
    max_examples=2,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking would start it for minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(scenarios(), min_size=TOGETHER, max_size=TOGETHER))
def test_both_engines_have_the_same_alerts_at_each_evaluation(drawn: list[Scenario]) -> None:
    tests = [promtool_test(one, list(states(one))) for one in drawn]
    with tempfile.TemporaryDirectory() as folder:
        assert promtool(Path(folder), tests) == ""
