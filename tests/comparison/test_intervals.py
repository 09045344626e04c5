"""Intervals have the known ends of published examples, and hold the truth as often as they say."""

import math
import random
from collections.abc import Callable
from functools import cache

import pytest

from headway.comparison.intervals import (
    Interval,
    difference_interval,
    quantile_interval,
    ratio_interval,
    sum_interval,
)
from headway.fleet.rates import poisson_interval

TRIES = 1_000
NOMINAL = 0.9
ERROR = 3 * math.sqrt(NOMINAL * (1 - NOMINAL) / TRIES)
"""Three standard errors of a share of that many tries."""


@pytest.mark.parametrize(
    ("quantile", "expected"),
    [(0.5, (2, 9)), (0.95, (8, None)), (0.05, (None, 3))],
)
def test_a_quantile_lies_between_two_of_ten_values(quantile: float, expected: Interval) -> None:
    assert quantile_interval([*range(10, 0, -1)], quantile) == expected


@pytest.mark.parametrize("values", [[], [7], [1, 2, 3, 4, 5]])
def test_few_values_tell_no_interval(values: list[float]) -> None:
    assert quantile_interval(values, 0.5) == (None, None)


def test_equal_losses_have_the_interval_of_their_count() -> None:
    low, high = sum_interval([3.0] * 10, 3.0)
    expected = poisson_interval(10)
    assert (low / 3, high / 3) == pytest.approx(expected, rel=2e-3)


def test_without_any_loss_it_may_still_be_as_many_as_of_nothing_seen() -> None:
    low, high = sum_interval([], 2.0)
    assert low == 0.0
    assert high / 2 == pytest.approx(poisson_interval(0)[1], rel=0.02)


def test_a_ratio_of_blocks_has_the_interval_of_student() -> None:
    blocks = [(100.0 + (-1) ** number, 10.0) for number in range(16)]
    reach = 2.13145 * math.sqrt(16 / 15) / math.sqrt(16) / 10
    assert ratio_interval(blocks) == pytest.approx((10 - reach, 10 + reach), rel=1e-6)
    assert ratio_interval(blocks[:9]) == (None, None)
    assert ratio_interval([(0.0, 0.0)] * 16) == (None, None)


def test_a_difference_has_the_distances_that_matter_at_a_right_angle() -> None:
    found = difference_interval(5, (4, 7), 3, (1, 4))
    assert found == pytest.approx((2 - math.sqrt(2), 2 + math.sqrt(8)))
    assert difference_interval(5, (None, 7), 3, (1, 4)) == pytest.approx((None, found[1]))
    assert difference_interval(5, (4, 7), 3, (1, None)) == pytest.approx((None, found[1]))


@pytest.mark.parametrize("seed", range(20))
def test_swapping_flips_the_signs(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311
    one, other = (sorted(draw.uniform(-9, 9) for _ in range(3)) for _ in range(2))
    here = difference_interval(one[1], (one[0], one[2]), other[1], (other[0], other[2]))
    there = difference_interval(other[1], (other[0], other[2]), one[1], (one[0], one[2]))
    assert here[0] is not None
    assert here[1] is not None
    assert there == pytest.approx((-here[1], -here[0]))


def covered(trial: Callable[[random.Random], tuple[float, Interval]]) -> float:
    """Return how often an interval holds the truth; an end that is not told holds it."""
    draw, hits = random.Random(7), 0  # noqa: S311
    for _ in range(TRIES):
        truth, (low, high) = trial(draw)
        hits += (low is None or low <= truth) and (high is None or truth <= high)
    return hits / TRIES


def struck(draw: random.Random, mean: float) -> list[float]:
    """Losses of expected sum 1 that strike as a Poisson process does, of uneven size."""
    number, time = 0, draw.expovariate(mean)
    while time < 1:
        number, time = number + 1, time + draw.expovariate(mean)
    return [draw.lognormvariate(-0.32, 0.8) / mean for _ in range(number)]


@pytest.mark.parametrize("size", [8, 40])
@pytest.mark.parametrize("quantile", [0.5, 0.95])
def test_the_interval_of_a_quantile_holds_it(size: int, quantile: float) -> None:
    def trial(draw: random.Random) -> tuple[float, Interval]:
        values = [draw.expovariate(1.0) for _ in range(size)]
        return -math.log(1 - quantile), quantile_interval(values, quantile, NOMINAL)

    assert covered(trial) >= NOMINAL - ERROR


@pytest.mark.parametrize("mean", [8, 30])
def test_the_interval_of_what_incidents_cost_holds_it(mean: float) -> None:
    def trial(draw: random.Random) -> tuple[float, Interval]:
        losses = struck(draw, mean)
        return 1.0, sum_interval(losses, max(losses, default=1 / mean), NOMINAL)

    assert covered(trial) >= NOMINAL - ERROR


@pytest.mark.parametrize("means", [(3, 3), (12, 12), (8, 40)])
def test_the_interval_of_a_difference_of_costs_holds_it(means: tuple[float, float]) -> None:
    def trial(draw: random.Random) -> tuple[float, Interval]:
        # as many incidents as the exposure is long, all of one kind
        one, other = ([loss * mean for loss in struck(draw, mean)] for mean in means)
        largest = max([*one, *other, 1.0])
        sides = [
            (
                sum(losses) / mean,
                tuple(end / mean for end in sum_interval(losses, largest, NOMINAL)),
            )
            for losses, mean in ((one, means[0]), (other, means[1]))
        ]
        return 0.0, difference_interval(*sides[0], *sides[1])

    assert covered(trial) >= NOMINAL - ERROR


@cache
def rate(count: int, exposure: float) -> Interval:
    low, high = poisson_interval(count, NOMINAL)
    return low / exposure, high / exposure


def test_the_interval_of_a_difference_of_rates_holds_it() -> None:
    def trial(draw: random.Random) -> tuple[float, Interval]:
        few, many = (len(struck(draw, mean)) for mean in (6.0, 24.0))
        return 0.0, difference_interval(few / 6, rate(few, 6), many / 24, rate(many, 24))

    assert covered(trial) >= NOMINAL - ERROR


def test_the_interval_of_a_difference_of_medians_holds_it() -> None:
    def trial(draw: random.Random) -> tuple[float, Interval]:
        sides = [sorted(draw.expovariate(1.0) for _ in range(size)) for size in (15, 31)]
        (one, of_one), (other, of_other) = (
            (values[len(values) // 2], quantile_interval(values, 0.5, NOMINAL)) for values in sides
        )
        return 0.0, difference_interval(one, of_one, other, of_other)

    assert covered(trial) >= NOMINAL - ERROR


def test_the_interval_of_a_ratio_of_blocks_holds_it() -> None:
    def trial(draw: random.Random) -> tuple[float, Interval]:
        blocks = []
        for _ in range(20):
            steps = draw.randint(8, 12)
            blocks.append((sum(draw.gauss(1.0, 0.1) for _ in range(steps)), steps))
        return 1.0, ratio_interval(blocks, NOMINAL)

    assert covered(trial) == pytest.approx(NOMINAL, abs=ERROR)
