"""The fleet's figures as people read them."""

import pytest

from fleet_figures import incident, share
from headway.fleet import words
from headway.fleet.totals import GPU_HOUR, Price, totals
from headway.wording import gpu_hours, money, size

EURO = {"per_gpu_hour": 2.0, "currency": "EUR"}
SECOND = 10**9
HOUR = 3_600 * SECOND


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0, 0, "0 GPU-h"), (312, 312, "312 GPU-h"), (300, 312, "300 to 312 GPU-h")],
)
def test_a_loss_is_a_range_where_its_ends_read_differently(low: int, high: int, said: str) -> None:
    assert words.lost({"low": low * GPU_HOUR, "high": high * GPU_HOUR}) == said


def test_a_loss_that_may_be_tiny_keeps_its_unit_apart() -> None:
    assert words.lost({"low": 1, "high": 5 * GPU_HOUR}) == "< 0.1 to 5.0 GPU-h"


def test_money_has_its_currency_and_without_a_price_is_unknown() -> None:
    assert words.cost({"low": 1500.0, "high": 2500.0}, EURO) == "1,500 to 2,500 EUR"
    assert words.cost(None, None) == "unknown"
    assert "HEADWAY_COLLECTOR_GPU_HOUR_PRICE" in words.NO_PRICE


def test_the_time_between_failures_says_on_what_it_rests() -> None:
    found = totals([share(incidents=[incident("a"), incident("b")])], None)["mtbf"]
    assert words.mtbf(found) == "40 s"
    assert words.mtbf_interval(found) == "2 failures in 1 min 20 s up; 11 s to 5 min 30 s"
    none = totals([share()], None)["mtbf"]
    assert words.mtbf(none) == "over 22 s"
    assert words.mtbf_interval(none) == "0 failures in 1 min 20 s up"
    assert words.mtbf(totals([], None)["mtbf"]) == "unknown"


def test_the_headline_names_the_run_the_loss_the_cause_and_the_side() -> None:
    group = totals(
        [
            share(
                incidents=[
                    incident("a", cause="gpu_fault", lost_gpu=9 * GPU_HOUR),
                    incident("b", cause="exception", lost_gpu=GPU_HOUR),
                ],
                seconds={"productive": 36_000, "restart": 36_000},
            ),
            share("other", seconds={"productive": 36_000, "stalled": 9_000}),
        ],
        None,
    )
    worst = {
        "run_name": "llama",
        "lost_gpu_ns": {"low": 20 * GPU_HOUR, "high": 20 * GPU_HOUR},
        "largest_loss": {"category": "restart", "gpu_ns": 20 * GPU_HOUR},
        "worst_incident": {"cause": "gpu_fault", "node": "node-7"},
    }

    assert words.headline(group, worst) == (
        "llama loses most: 20.0 GPU-h, 80.0 % of all losses, mainly restart (20.0 GPU-h); its "
        "costliest incident was GPU fault on node-7. All incidents cost 10.0 GPU-h: machines "
        "90.0 %, software 10.0 %."
    )


def test_a_fleet_without_losses_says_so() -> None:
    assert words.headline(totals([], None), None) == "Nothing was lost."


def test_without_incidents_no_side_is_named() -> None:
    worst = {
        "run_name": "llama",
        "lost_gpu_ns": {"low": 40 * SECOND, "high": 40 * SECOND},
        "largest_loss": {"category": "restart", "gpu_ns": 40 * SECOND},
        "worst_incident": None,
    }
    assert words.headline(totals([share()], None), worst) == (
        "run loses most: < 0.1 GPU-h, mainly restart (< 0.1 GPU-h). No incident cost anything."
    ).replace("run", "llama", 1)


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (None, "unknown"),
        (0, "0 B"),
        (999, "999 B"),
        (5_380_905, "5.4 MB"),
        (999_960_000, "1.0 GB"),
        (12_400_000_000, "12.4 GB"),
        (123_400_000_000, "123 GB"),
        (5 * 10**18, "5000 PB"),
    ],
)
def test_bytes_read_in_three_digits(amount: int | None, said: str) -> None:
    assert size(amount) == said


@pytest.mark.parametrize(
    ("hours", "said"),
    [(0, "0 GPU-h"), (0.01, "< 0.1 GPU-h"), (3.44, "3.4 GPU-h"), (12_345.4, "12,345 GPU-h")],
)
def test_gpu_time_reads_in_hours(hours: float, said: str) -> None:
    assert gpu_hours(round(hours * GPU_HOUR)) == said


def test_money_below_a_hundred_has_cents() -> None:
    assert money(3.456, "EUR") == "3.46 EUR"
    assert money(123_456.7, "USD") == "123,457 USD"
    assert money(Price(per_gpu_hour=2.5, currency="USD").of(4 * GPU_HOUR), "USD") == "10.00 USD"
