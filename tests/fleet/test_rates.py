"""Rates of rare faults with their exact interval, against published tables."""

import pytest

from headway.fleet.rates import NS_PER_DAY, poisson_interval, rate_of

GARWOOD = {
    0: (0.0, 3.689),
    1: (0.0253, 5.572),
    2: (0.242, 7.225),
    3: (0.619, 8.767),
    5: (1.623, 11.668),
    10: (4.795, 18.390),
    20: (12.217, 30.888),
    50: (37.111, 65.919),
    100: (81.364, 121.627),
}
"""95 % limits as tables of the Poisson distribution print them."""


@pytest.mark.parametrize("count", GARWOOD)
def test_the_interval_is_that_of_the_published_tables(count: int) -> None:
    assert poisson_interval(count) == pytest.approx(GARWOOD[count], abs=6e-4)


def test_the_interval_of_many_is_that_of_a_normal_distribution() -> None:
    low, high = poisson_interval(1_000_000)
    assert (low, high) == pytest.approx((1e6 - 1960, 1e6 + 1960), abs=5)


def test_more_confidence_needs_a_wider_interval() -> None:
    narrow, wide = poisson_interval(7, 0.9), poisson_interval(7, 0.99)
    assert wide[0] < narrow[0] < 7 < narrow[1] < wide[1]


def test_a_rate_is_per_thousand_node_days() -> None:
    rate = rate_of(10, 2_000 * NS_PER_DAY)
    assert (rate.rate, rate.node_days) == (5.0, 2_000)
    assert (rate.low, rate.high) == pytest.approx((2.398, 9.195), abs=1e-3)


def test_without_a_fault_the_rate_is_zero_and_its_upper_end_is_not() -> None:
    rate = rate_of(0, 1_000 * NS_PER_DAY)
    assert (rate.rate, rate.low) == (0.0, 0.0)
    assert rate.high == pytest.approx(3.689, abs=1e-3)


def test_without_exposure_nothing_is_known() -> None:
    rate = rate_of(3, 0)
    assert (rate.rate, rate.low, rate.high) == (None, None, None)
