"""Every rule fires where it must and nowhere else, in both engines alike."""

from pathlib import Path
from typing import Any

import pytest

from alert_scenarios import (
    HOUR,
    MINUTE,
    TICK,
    Course,
    Scenario,
    Series,
    course,
    promtool,
    promtool_test,
    stretches,
)
from headway.alerts.catalogue import RULES
from headway.alerts.evaluation import Labels

KEPT = 5 * MINUTE
RUN: Labels = (("run", "r"),)


def one(
    name: str,
    rule: str,
    values: Course,
    *fires: tuple[int, int],
    labels: Labels = RUN,
    **more: str,
) -> Scenario:
    """Return a scenario of one series with one alert."""
    series = Series(metric=RULES[rule].metric, labels={**dict(labels), **more}, values=values)
    return Scenario(name=name, rule=rule, series=(series,), fires={labels: fires} if fires else {})


def restarts(*series: Series, fires: dict[Labels, tuple[tuple[int, int], ...]]) -> Scenario:
    return Scenario(name="", rule="RestartLoop", series=series, fires=fires)


LAYER: Labels = (("layer", "launcher"), ("run", "r"))
HOOK: Labels = (("receiver", "hook"),)
NODE: Labels = (("node", "n7"),)
PLACED: Labels = (("node", "n7"), ("run", "r"))
PHASE: Labels = (("phase", "checkpoint_save"), ("run", "r"), ("timeout", "heartbeat"))
NOBODY = {"suspect_node": "", "suspect_rank": ""}
LOOP = "headway_attempts_without_durable_step"
TEN = 10 * MINUTE

SCENARIOS = (
    # restart loop
    one("three attempts lead nowhere", "RestartLoop", course((1, 8), (2, 8), (3, 40)), (16, 56)),
    one("two quick restarts, then healthy", "RestartLoop", course((1, 4), (2, 8), (0, 60))),
    one(
        "a loop of one step per attempt",
        "RestartLoop",
        course((1, 2), (2, 2), (3, 2), (4, 2), (5, 2), (0, 60)),
        (4, 10 + KEPT),
    ),
    one(
        "flapping around the edge is one page",
        "RestartLoop",
        course(*[(3, 4), (2, 8)] * 4, (0, 40)),
        (0, 3 * 12 + 4 + KEPT),
    ),
    one("a series that is born at 3", "RestartLoop", course((None, 4), (3, 20)), (4, 24)),
    one(
        "a collector that restarts in the middle",
        "RestartLoop",
        course((3, 8), (None, 8), (3, 20)),
        (0, 36),
    ),
    Scenario(
        name="another instance label after each restart of the collector",
        rule="RestartLoop",
        series=tuple(
            Series(
                metric=LOOP,
                labels={"run": "r", "instance": f"host:{number}"},
                values=course((None, number * 10), (3, 10), (None, 30 - number * 10)),
            )
            for number in range(3)
        ),
        fires={RUN: ((0, 40),)},
    ),
    Scenario(
        name="the run's team comes beside its own labels",
        rule="RestartLoop",
        series=(
            Series(metric=LOOP, labels={"run": "r"}, values=course((3, 10))),
            Series(
                metric="headway_run_info",
                labels={"run": "r", "team": "llm", "cluster": "east", "owner": "ada"},
                values=course((1, 10)),
            ),
        ),
        fires={RUN: ((0, 10),)},
    ),
    Scenario(
        name="two collectors disagree about a run's owner",
        rule="RestartLoop",
        series=(
            Series(metric=LOOP, labels={"run": "r"}, values=course((3, 10))),
            *(
                Series(
                    metric="headway_run_info",
                    labels={"run": "r", "team": "llm", "cluster": "east", "owner": owner},
                    values=course((1, 10)),
                )
                for owner in ("ada", "grace")
            ),
        ),
        fires={RUN: ((0, 10),)},
    ),
    Scenario(
        name="two runs are two alerts",
        rule="RestartLoop",
        series=(
            Series(metric=LOOP, labels={"run": "r"}, values=course((3, 10))),
            Series(metric=LOOP, labels={"run": "s"}, values=course((0, 4), (3, 6))),
        ),
        fires={RUN: ((0, 10),), (("run", "s"),): ((4, 10),)},
    ),
    one("the run recovers and stays", "RestartLoop", course((3, 4), (0, 40)), (0, 4 + KEPT)),
    # what repeats
    one("twice on one node", "PersistentFault", course((0, 4), (2, 20)), (4, 24)),
    one("two faults that share nothing", "PersistentFault", course((0, 40))),
    one("once is no pattern", "PersistentFault", course((0, 4), (1, 40))),
    # budgets
    one("two left, then one", "RestartBudgetLow", course((2, 8), (1, 8)), (8, 16), labels=LAYER),
    one("three left", "RestartBudgetLow", course((3, 40)), labels=LAYER),
    one("none left", "RestartBudgetExhausted", course((1, 8), (0, 8)), (8, 16), labels=LAYER),
    one("one left", "RestartBudgetExhausted", course((1, 40)), labels=LAYER),
    one("it is given up", "RunFailed", course((0, 4), (1, 8)), (4, 12)),
    one("it runs", "RunFailed", course((0, 40))),
    # hangs and recoveries
    one("silence reaches its limit", "RunHung", course((0.2, 8), (0.9, 8), (1.1, 8)), (16, 24)),
    one("a long checkpoint ends in time", "RunHung", course((0.2, 8), (0.95, 8), (0, 20))),
    one("down for thrice the usual", "NotRecovered", course((0, 4), (2.5, 4), (3.5, 8)), (8, 16)),
    one("recovered in its usual time", "NotRecovered", course((0, 4), (0.9, 8), (0, 30))),
    one("a recovery that differs", "RecoveryNotValid", course((0, 4), (1, 8)), (4, 12)),
    one("recoveries agree", "RecoveryNotValid", course((0, 40))),
    one("a timeout at work", "SuspectedFalseAlarm", course((0, 4), (1, 8)), (4, 12)),
    one("timeouts that were right", "SuspectedFalseAlarm", course((0, 40))),
    one("four fifths of a timeout", "PhaseNearTimeout", course((0.8, 8)), (0, 8), labels=PHASE),
    one("half of a timeout", "PhaseNearTimeout", course((0.5, 40)), labels=PHASE),
    # checkpoints
    one(
        "a start far below the newest checkpoint",
        "ResumedBelowNewestCheckpoint",
        course((0, 4), (300, 8)),
        (4, 12),
    ),
    one("a start from the newest", "ResumedBelowNewestCheckpoint", course((0, 40))),
    one("a checkpoint is torn", "CheckpointUnreadable", course((0, 4), (1, 8)), (4, 12)),
    one("every checkpoint is read", "CheckpointUnreadable", course((0, 40))),
    one("no save for three intervals", "CheckpointStale", course((1, 4), (3, 20)), (12, 24)),
    one("one late save", "CheckpointStale", course((1, 4), (2.5, 7), (0.1, 30))),
    one("writes fill the interval", "CheckpointWriteSlow", course((0.95, 20)), (8, 20)),
    one("writes take half of it", "CheckpointWriteSlow", course((0.5, 40))),
    one("three wait", "CheckpointQueue", course((1, 4), (3, 8)), (4, 12)),
    one("one waits", "CheckpointQueue", course((1, 40))),
    one("memory is short", "MemoryPressure", course((0.5, 10)), (4, 10)),
    one("memory is short for a moment", "MemoryPressure", course((0.5, 3), (0, 40))),
    # goodput
    one(
        "a serving loop without progress",
        "TrainingGoodputLow",
        course((0.5, 70)),
        (60, 70),
        window="1h",
    ),
    one(
        "start-up and a first checkpoint",
        "TrainingGoodputLow",
        course((0.6, 40), (0.1, 40)),
        window="1h",
    ),
    Scenario(
        name="incidents that come and go meanwhile do not begin its time anew",
        rule="TrainingGoodputLow",
        series=(
            Series(
                metric=RULES["TrainingGoodputLow"].metric,
                labels={"run": "r", "window": "1h"},
                values=course((0.5, 70)),
            ),
            *(
                Series(
                    metric="headway_open_incident_gpu_seconds",
                    labels={"run": "r", "incident": cause, "cause": cause, **NOBODY},
                    values=course((None, begin), (60, 10), (None, 60 - begin)),
                )
                for begin, cause in ((10, "exception"), (30, "killed"))
            ),
        ),
        fires={RUN: ((60, 70),)},
    ),
    one("another window is not meant", "TrainingGoodputLow", course((0.9, 70)), window="24h"),
    one(
        "machines that do not serve",
        "InfrastructureGoodputLow",
        course((0.4, 130)),
        (120, 130),
        window="1h",
    ),
    one("machines that serve", "InfrastructureGoodputLow", course((0.05, 130)), window="1h"),
    one("an hour burns a day", "GoodputBurnFast", course((8, 140)), (120, 140), window="1h"),
    one("a slow day alone", "GoodputBurnFast", course((3, 130)), window="1h"),
    one(
        "every day a little late",
        "GoodputBurnSlow",
        course((3, HOUR + 20)),
        (HOUR, HOUR + 20),
        window="24h",
    ),
    one("within the target", "GoodputBurnSlow", course((0.9, HOUR + 20)), window="24h"),
    # hardware
    one("a GPU asks for a reset", "GpuFault", course((0, 4), (1, 8)), (4, 12), labels=PLACED),
    one("faults of the program", "GpuFault", course((0, 40)), labels=PLACED),
    one("a node fails again", "RepeatOffenderNode", course((1, 4), (2, 8)), (4, 12), labels=NODE),
    one("a node failed once", "RepeatOffenderNode", course((1, 40)), labels=NODE),
    one("a rank stays behind", "Straggler", course((0.2, 130)), (120, 130)),
    one("a rank was behind", "Straggler", course((0.2, 60), (0.0, 70))),
    # the pipeline
    one("commits fail", "StorageFailing", course((0, 4), (1, 12)), (8, 16), labels=()),
    one("one commit failed", "StorageFailing", course((1, 2), (0, 30)), labels=()),
    one(
        "a receiver refuses for a quarter of an hour",
        "NoticeUndelivered",
        course((0, 4), (300, 4), (900, 8), (0, 40)),
        (8, 16 + KEPT),
        labels=HOOK,
    ),
    one("a receiver is away for a minute", "NoticeUndelivered", course((60, 40)), labels=HOOK),
    one("nothing heard for six minutes", "AgentSilent", course((0, 4), (360, 8)), (4, 12)),
    one("nothing heard for a minute", "AgentSilent", course((60, 40))),
    one("a gap that stays", "IngestGap", course((1, 70)), (60, 70), labels=()),
    one("a gap that fills", "IngestGap", course((1, 20), (0, 40)), labels=()),
    one("a spool was full", "EventsDropped", course((0, 4), (17, 8)), (4, 12)),
    one("nothing was dropped", "EventsDropped", course((0, 40))),
    one("it serves", "Watchdog", course((1, 20)), (0, 20), labels=()),
    one("it is gone", "Watchdog", course((1, 4), (None, 40)), (0, 4 + KEPT), labels=()),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: f"{one.rule}: {one.name}")
def test_the_embedded_engine_fires_when_it_must(scenario: Scenario) -> None:
    assert stretches(RULES[scenario.rule], scenario) == dict(scenario.fires)


def test_every_rule_has_a_case_that_fires_and_one_that_must_not() -> None:
    firing = {scenario.rule for scenario in SCENARIOS if scenario.fires}
    silent = {scenario.rule for scenario in SCENARIOS if not scenario.fires}
    assert firing == set(RULES)
    assert silent == set(RULES) - {"Watchdog"}


@pytest.mark.slow
def test_prometheus_fires_when_the_embedded_engine_does(tmp_path: Path) -> None:
    tests = [promtool_test(scenario, numbers(scenario)) for scenario in SCENARIOS]
    assert promtool(tmp_path, tests) == ""


def numbers(scenario: Scenario) -> list[dict[str, Any]]:
    """Return checks that ask at each evaluation how many alerts fire."""
    checks: list[dict[str, Any]] = []
    for tick in range(scenario.ticks):
        number = sum(
            first <= tick < last for parts in scenario.fires.values() for first, last in parts
        )
        samples = [{"labels": "{}", "value": number}] if number else []
        checks.append(
            {
                "expr": f'count(ALERTS{{alertname="{scenario.rule}", alertstate="firing"}})',
                "eval_time": f"{tick * TICK}s",
                "exp_samples": samples,
            }
        )
    return checks
