"""How a fleet recovers: rates with intervals, curves, attempts, and what the slow ones share."""

from fractions import Fraction

import pytest

from fleet_figures import incident, worked_example
from headway.fleet.differences import FEWEST, at_least, compare
from headway.fleet.past import past_incidents
from headway.fleet.rates import wilson_interval
from headway.fleet.recoveries import CURVE_POINTS, curve, recoveries
from headway.report import report
from timeline import SECOND


@pytest.mark.parametrize(
    ("hits", "tries", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (8, 10, 0.4902, 0.9433),
        (10, 10, 0.7225, 1.0),
        (1, 29, 0.0061, 0.1718),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_the_interval_of_a_share_is_wilsons(hits: int, tries: int, low: float, high: float) -> None:
    # the last two from R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3
    assert wilson_interval(hits, tries) == pytest.approx((low, high), abs=6e-5)


def test_nothing_tried_has_no_interval() -> None:
    assert wilson_interval(0, 0) is None


def test_one_run_recovers_as_its_report_says() -> None:
    told = report(worked_example())

    found = recoveries(past_incidents(told))

    for group in ("by_cause", "by_layer"):
        for name, values in told["recovery"][group].items():
            assert values.items() <= found[group][name].items()
    assert told["recovery"]["all"].items() <= found["all"].items()
    assert found["phases"] == told["recovery"]["phases"]
    assert found["all"]["phase_ns"]["recompute"] == 74 * SECOND
    assert found["tail"][0]["incident"] == told["incidents"][0]["incident"]


def test_a_rate_has_its_counts_and_its_interval() -> None:
    known = [incident(str(n)) for n in range(8)]
    known += [
        incident("lost", outcome="not_recovered", recovered=None),
        incident("lost too", outcome="not_recovered", recovered=None),
        incident("open", outcome="open", recovered=None),
    ]

    found = recoveries(known)["by_cause"]["exception"]

    assert (found["held"], found["settled"], found["incidents"]) == (8, 10, 11)
    assert found["rate"] == 0.8
    assert (found["rate_low"], found["rate_high"]) == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_attempts_per_success_count_those_of_incidents_that_never_recovered() -> None:
    known = [
        incident("a", layers=("launcher",)),
        incident("b", layers=("launcher", "launcher", "scheduler"), outcome="escalated"),
        incident("c", layers=("launcher",) * 5, outcome="not_recovered", recovered=None),
    ]

    found = recoveries(known)["all"]

    assert found["attempts_needed"] == {"1": 1, "3": 1}
    assert (found["attempts_spent"], found["attempts_per_success"]) == (9, 4.5)


def test_a_curve_of_few_times_tells_them_all() -> None:
    assert curve([30, 10, 20, 20]) == {"ns": [10, 20, 20, 30], "share": [0.25, 0.5, 0.75, 1.0]}
    assert curve([]) == {"ns": [], "share": []}
    assert curve([7]) == {"ns": [7], "share": [1.0]}


def test_a_curve_of_many_times_keeps_its_ends_and_true_shares() -> None:
    found = curve(range(1, 10_001))

    assert len(found["ns"]) == CURVE_POINTS
    assert (found["ns"][0], found["ns"][-1]) == (1, 10_000)
    assert all(
        share == time / 10_000 for time, share in zip(found["ns"], found["share"], strict=True)
    )


def test_the_chance_of_a_table_is_fishers() -> None:
    # the lady who tasted tea: 3 of 4 right, 17 of 70 ways to do as well or better
    assert Fraction(at_least(3, 4, 1, 4)).limit_denominator(1000) == Fraction(17, 70)
    assert at_least(0, 4, 3, 4) == 1.0


def test_a_node_of_most_slow_recoveries_stands_out() -> None:
    known = [incident(f"slow {n}", recovered=(100 + n) * SECOND, node="node-7") for n in range(5)]
    known += [incident(f"fast {n}", recovered=(10 + n) * SECOND, node="node-1") for n in range(15)]

    found = compare(known)

    assert (found.slow, found.others, found.threshold) == (5, 15, 100 * SECOND)
    first = found.differences[0]
    # 1 of comb(20, 5) = 15504 ways, times the two nodes that are compared
    assert (first.what, first.value, first.slow, first.others) == ("node", "node-7", 5, 0)
    assert first.chance == pytest.approx(2 / 15504)
    assert first.stands_out
    assert [one.value for one in found.differences if one.stands_out] == ["node-7"]


def test_few_recoveries_are_not_compared() -> None:
    found = compare([incident(str(n)) for n in range(FEWEST - 1)])

    assert (found.threshold, found.others, list(found.differences)) == (None, FEWEST - 1, [])


def test_two_of_three_slow_ones_on_one_node_prove_nothing() -> None:
    known = [
        incident(f"slow {n}", recovered=(100 + n) * SECOND, node="node-7" if n else "node-1")
        for n in range(3)
    ]
    known += [incident(f"fast {n}", node=f"node-{n % 6}") for n in range(9)]

    found = compare(known)

    assert any(one.value == "node-7" and one.slow == 2 for one in found.differences)
    assert not any(one.stands_out for one in found.differences)


def test_amounts_are_compared_with_the_median_of_all() -> None:
    known = [
        incident(str(n), recovered=(10 + n) * SECOND, checkpoint_bytes=n * 10**9)
        for n in range(1, 21)
    ]

    found = compare(known)

    first = found.differences[0]
    assert (first.what, first.value, first.slow, first.others) == (
        "checkpoint size",
        "above 10.0 GB",
        5,
        5,
    )


def test_equal_recoveries_are_no_slow_ones() -> None:
    found = compare([incident(str(n), node=f"node-{n % 2}") for n in range(20)])

    assert not any(one.stands_out for one in found.differences)
