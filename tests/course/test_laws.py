"""What holds for the course of every run, tried on random runs with random gaps and clocks."""

import pytest

from headway.course.configuration import configurations
from headway.course.pace import pace
from headway.course.periods import periods
from headway.course.rank_lanes import rank_lanes
from headway.ledger import Ledger, ledger
from ledger_laws import drawn

SEEDS = range(25)


def run(seed: int) -> Ledger:
    envelopes, as_of, _ = drawn(seed)
    return ledger(envelopes, as_of)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_covers_the_whole_run(seed: int) -> None:
    of = run(seed)

    found = rank_lanes(of, columns=97)

    assert {rank for lane in found.lanes for rank in lane.ranks} == {
        rank for attempt in of.book.attempts for rank in attempt.ranks
    }
    for lane in found.lanes:
        assert sum(lane.times.values()) == max(of.elapsed, 1)
        assert all(ns > 0 for ns in lane.times.values())
    if len(found.codes):
        assert found.codes.max() < len(found.names)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_executed_step_falls_into_one_column(seed: int) -> None:
    of = run(seed)

    found = pace(of, columns=50)

    assert sum(one.steps for one in found) == of.steps.executed
    for one in found:
        assert (one.steps == 0) == (one.step is None)
        if one.step is not None and one.tail is not None and one.slowest is not None:
            assert one.step <= one.tail <= one.slowest


@pytest.mark.parametrize("seed", SEEDS)
def test_the_periods_of_all_configurations_are_the_whole_run(seed: int) -> None:
    of = run(seed)

    found = periods(of)

    assert sum(one.end - one.start for one in found) == (of.elapsed if of.book.attempts else 0)
    numbers = [number for one in found for number in one.attempts]
    assert numbers == [attempt.number for attempt in of.book.attempts]
    assert len(configurations(of)) == len(of.book.attempts)
