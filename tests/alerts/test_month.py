"""Small months of simulated fleet: who is told of what, and that nobody is of what recovers."""

import pytest

from benchmarks.paging.figures import Judged, figures
from benchmarks.paging.judging import met, verdicts
from benchmarks.paging.page import page
from benchmarks.paging.quality import numbers, of_seed
from benchmarks.paging.watching import Told
from headway.simulate.needs import Need

RUNS, DAYS = 24, 3
TOLD = {
    1: {
        "page": {"GoodputBurnFast": 1, "NotRecovered": 2, "PersistentFault": 1, "RestartLoop": 1},
        "ticket": {
            "GpuFault": 5,
            "RestartBudgetLow": 1,
            "TrainingGoodputLow": 1,
        },
    },
    2: {
        "page": {
            "NotRecovered": 1,
            "PersistentFault": 2,
            "RestartBudgetExhausted": 1,
            "RunHung": 1,
        },
        "ticket": {"CheckpointWriteSlow": 1, "GpuFault": 2, "RestartBudgetLow": 2},
    },
}
"""By seed, how often each rule was the first to be told of."""


@pytest.fixture(scope="module", params=[1, 2])
def judged(request: pytest.FixtureRequest) -> tuple[int, list[Judged]]:
    return request.param, of_seed(request.param, RUNS, DAYS)


@pytest.mark.slow
def test_everybody_who_is_needed_is_told_and_nobody_else(judged: tuple[int, list[Judged]]) -> None:
    seed, runs = judged
    found = figures(runs, DAYS)
    recovered = [
        one
        for run in runs
        if not run.seen.needs
        for one in run.seen.incidents
        if one.recovered is not None
    ]
    assert len(recovered) >= 5, "what recovers is to wake nobody"
    for severity in ("page", "ticket"):
        part = found[f"{severity}s"]
        rules = {rule: one["told"] for rule, one in part["by_rule"].items()}
        assert rules == TOLD[seed][severity]
        assert (part["false_ones"], part["missed_ones"]) == ([], [])
        assert part["precision"] == part["recall"] == 1
    assert f"seeds {seed}:" in page(found)


def need(kind: str, begin: int, end: int) -> Need:
    return Need(kind=kind, begin=begin, end=end)


def told(severity: str, begin: int, end: int | None, **rules: int) -> Told:
    return Told(severity=severity, begin=begin, end=end, rules=rules)


def test_a_page_is_true_while_the_run_needs_somebody_for_what_it_says() -> None:
    needs = [need("loop", 100, 200)]
    during = told("page", 120, 220, RestartLoop=120)
    early = told("page", 90, 300, GoodputBurnFast=90)
    late = told("page", 210, 300, RestartLoop=210)
    other = told("page", 120, 300, ResumedBelowNewestCheckpoint=120)
    found = verdicts([early, during, other, late], needs, "page")
    assert [bool(one.needs) for one in found] == [False, True, False, False]
    (only,) = met([early, during, other, late], needs, "page")
    assert (only.rule, only.delay) == ("RestartLoop", 20)


def test_a_page_that_goes_on_meets_a_need_that_begins_meanwhile() -> None:
    (only,) = met([told("page", 50, None, NotRecovered=50)], [need("down", 100, 200)], "page")
    assert only.delay == 0
    (over,) = met([told("page", 50, 90, NotRecovered=50)], [need("down", 100, 200)], "page")
    assert over.delay is None


def test_a_ticket_is_no_page_and_a_summary_is_not_judged() -> None:
    loop = [need("loop", 100, 200)]
    (missed,) = met([told("ticket", 110, 150, RestartLoop=110)], loop, "page")
    assert missed.delay is None
    assert verdicts([told("ticket", 110, 150, GoodputBurnSlow=110)], loop, "ticket") == []
    beside = Told(severity="page", begin=5, end=90, rules={"RunHung": 5}, beside={"GpuFault": 9})
    (ticket,) = met([beside], [need("broken_gpu", 4, 60)], "ticket")
    assert (ticket.rule, ticket.delay) == ("GpuFault", 5)


@pytest.mark.parametrize(
    ("text", "found"), [("3-5", [3, 4, 5]), ("7", [7]), ("1,4", [1, 4]), ("", [])]
)
def test_seeds_are_told_as_a_range_or_one_by_one(text: str, found: list[int]) -> None:
    assert numbers(text) == found
