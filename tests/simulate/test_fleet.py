"""The made-up fleet is one that could have been: numbered, placed, and known to its ledgers."""

from collections import defaultdict
from itertools import pairwise

import pytest

from headway.events import Envelope, GpuXid, RunConfigured
from headway.incidents import incidents
from headway.ledger import ledger
from headway.simulate.fleet import AHEAD, Fleet, fleet

NOW = 1_790_000_000 * 10**9


@pytest.fixture(scope="module")
def small() -> Fleet:
    return fleet(NOW, runs=6, live=1, nodes=8, incidents=24)


def everything(made: Fleet) -> list[Envelope]:
    return [*made.machines, *(event for run in made.runs for event in run.events)]


@pytest.mark.slow
def test_the_same_seed_and_time_give_the_same_fleet(small: Fleet) -> None:
    again = fleet(NOW, runs=6, live=1, nodes=8, incidents=24)

    assert everything(again) == everything(small)


def test_no_producer_leaves_a_number_out_or_goes_back_in_time(small: Fleet) -> None:
    by_producer: dict[str, list[Envelope]] = defaultdict(list)
    for event in everything(small):
        by_producer[event.producer].append(event)

    for events in by_producer.values():
        assert events[0].first_sequence == 0
        for before, after in pairwise(events):
            assert after.first_sequence == before.last_sequence + 1
            assert after.wall >= before.wall


def test_what_has_ended_is_past_and_what_lives_goes_on(small: Fleet) -> None:
    assert [run.live for run in small.runs] == [False] * 5 + [True]
    for run in small.runs:
        last = run.events[-1].wall
        assert (last > NOW + AHEAD // 2) if run.live else (last < NOW)


@pytest.mark.slow
def test_every_run_says_whose_it_is_and_its_ledger_has_no_contradiction(small: Fleet) -> None:
    for run in small.runs:
        configured = next(e.event for e in run.events if isinstance(e.event, RunConfigured))
        assert configured.labels is not None
        assert {"team", "cluster", "gpu_type"} <= configured.labels.keys()
        found = ledger(run.events, run.events[-1].wall)
        assert not found.problems
        assert found.steps.highest


def test_gpu_faults_are_told_by_the_node_and_most_strike_few_gpus(small: Fleet) -> None:
    assert not [e for run in small.runs for e in run.events if isinstance(e.event, GpuXid)]
    told = [event for event in small.machines if isinstance(event.event, GpuXid)]

    assert all(event.run is None and event.node for event in told)
    assert {event.event.classification for event in told if isinstance(event.event, GpuXid)}


@pytest.mark.slow
def test_a_fleet_has_about_as_many_incidents_as_were_asked_for(small: Fleet) -> None:
    found = sum(len(incidents(ledger(run.events, run.events[-1].wall))) for run in small.runs)

    assert 12 <= found <= 36
