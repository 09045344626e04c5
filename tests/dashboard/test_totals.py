"""Figures over several runs weigh each run by its time."""

import pytest

from headway.dashboard import totals
from sample_run import sample


def run(low: float, high: float, elapsed: int, gpus: int | None = None) -> dict[str, object]:
    return {
        "elapsed_ns": elapsed,
        "training_goodput": {"low": low, "high": high},
        "gpu_time": {"gpus": gpus},
    }


def test_a_long_run_counts_for_more_than_a_short_one() -> None:
    found = totals.weighted([run(0.5, 0.6, 300), run(0.9, 0.9, 100)], "training_goodput")

    assert found == pytest.approx((0.6, 0.675))


def test_a_large_run_counts_for_more_than_a_small_one_where_every_run_knows_its_gpus() -> None:
    runs = [run(0.5, 0.5, 100, 8), run(0.9, 0.9, 100, 2)]

    assert totals.weighted(runs, "training_goodput") == pytest.approx((0.58, 0.58))
    mixed = [*runs, run(0.7, 0.7, 100)]
    assert totals.weighted(mixed, "training_goodput") == pytest.approx((0.7, 0.7))


def test_no_run_has_no_goodput() -> None:
    assert totals.weighted([], "training_goodput") is None
    assert totals.weighted([run(0.0, 0.0, 0)], "training_goodput") is None


def test_a_run_that_has_just_begun_has_no_weight() -> None:
    begun = run(0.0, 0.0, 0) | {"training_goodput": {"low": None, "high": None}}

    found = totals.weighted([begun, run(0.5, 0.5, 100)], "training_goodput")

    assert found == pytest.approx((0.5, 0.5))


def test_live_runs_are_those_that_have_not_ended() -> None:
    live, ended = sample(live=True).report, sample().report

    assert totals.live([live, ended]) == [live]
