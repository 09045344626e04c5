"""The naive ledger gives the worked examples of the design and the probes to the nanosecond."""

import random
from collections.abc import Mapping

import pytest

from headway.events import (
    Allocation,
    CheckpointFinalized,
    CheckpointLoadFailed,
    CheckpointScheduled,
    Fault,
    RestartPhase,
    Resumed,
    StopAnnounced,
)
from oracle.naive_ledger import naive_ledger
from oracle.probes import RESTARTS, probes
from oracle.random_timelines import FEATURES, random_as_of, random_run
from oracle.scenario import SECOND, Scenario

PROBES = probes()


def seconds(times: Mapping[str, int]) -> dict[str, float]:
    return {name: time / SECOND for name, time in times.items() if time}


@pytest.mark.parametrize("name", PROBES)
def test_the_probes_have_their_expected_ledgers(name: str) -> None:
    envelopes, as_of, expected = PROBES[name]
    ledger = naive_ledger(envelopes, as_of)
    assert seconds(ledger.categories) == seconds(expected)
    assert ledger.attempts - 1 == RESTARTS.get(name, (ledger.attempts - 1,))[0]
    if name in RESTARTS:
        assert ledger.failed_starts == RESTARTS[name][1]


@pytest.mark.slow
def test_a_dead_rank_whose_peers_notice_after_a_minute() -> None:
    run = Scenario("one-1")
    ranks = (0, 1, 2, 3)
    run.start("a", 0, ranks)
    for rank in ranks:
        run.steps("a", 1, 574, 0, 1, rank)
    run.event(500, CheckpointScheduled(checkpoint="c500", step=500), "a", 0)
    run.event(510, CheckpointFinalized(checkpoint="c500", step=500), "a", 0)
    run.exit("a", 574, [3], signal=9, by="kernel")
    run.event(634, RestartPhase(layer="launcher", phase="stop_workers", state="began"))
    run.exit("a", 636, [0, 1, 2], signal=15, by="launcher")
    run.event(636, RestartPhase(layer="launcher", phase="stop_workers", state="ended"))
    run.event(636, RestartPhase(layer="launcher", phase="spawn", state="began"))
    run.start("b", 640, ranks, layer="launcher")
    run.event(640, RestartPhase(layer="launcher", phase="spawn", state="ended"))
    for rank in ranks:
        run.phase("b", "model", 640, 646, rank)
        run.phase("b", "checkpoint_load", 646, 654, rank)
        run.event(654, Resumed(completed=500, checkpoint="c500"), "b", rank)
        run.steps("b", 501, 100, 654, 1, rank)
    run.exit("b", 754, ranks, code=0, by="itself")
    run.end(754)
    ledger = naive_ledger(run.envelopes(), run.absolute(754))
    assert seconds(ledger.categories) == {
        "productive": 600,
        "rolled_back": 74,
        "stalled": 60,
        "restart": 12,
        "checkpoint_load": 8,
    }
    assert seconds(ledger.parts["productive"]) == {"durable": 500, "at_risk": 100}
    assert ledger.rollbacks == [("b", 74)]


@pytest.mark.slow
def test_a_preemption_with_a_save_and_an_hour_in_the_queue() -> None:
    run = Scenario("two-1")
    run.event(0, Allocation(gpus_held=4))
    run.start("a", 0)
    run.steps("a", 1, 1000, 0, 1)
    run.event(1000, StopAnnounced(reason="preemption"), "a", 0)
    run.phase("a", "checkpoint_save", 1000, 1020)
    run.event(1020, CheckpointScheduled(checkpoint="c1000", step=1000), "a", 0)
    run.event(1020, CheckpointFinalized(checkpoint="c1000", step=1000), "a", 0)
    run.exit("a", 1025, signal=15, by="scheduler")
    run.event(1025, Allocation(gpus_held=0))
    run.event(4625, Allocation(gpus_held=4))
    run.start("b", 4625)
    run.phase("b", "checkpoint_load", 4655, 4663)
    run.event(4663, Resumed(completed=1000, checkpoint="c1000"), "b", 0)
    run.exit("b", run.steps("b", 1001, 100, 4665, 1), code=0, by="itself")
    run.end(4765)
    ledger = naive_ledger(run.envelopes(), run.absolute(4765))
    assert seconds(ledger.categories) == {
        "productive": 1100,
        "checkpoint_save": 20,
        "restart": 5 + 30 + 2,
        "down": 3600,
        "checkpoint_load": 8,
    }
    assert seconds(ledger.parts["down"]) == {"queued": 3600}
    assert seconds(ledger.parts["restart"]) == {"teardown": 5, "other": 32}
    assert ledger.rollbacks == []


@pytest.mark.slow
def test_a_torn_checkpoint_under_a_launcher() -> None:
    run = Scenario("three-1")
    run.start("a", 0)
    run.steps("a", 1, 800, 0, 1)
    for name, step, done in (("A", 400, 410), ("B", 700, 710)):
        run.event(step, CheckpointScheduled(checkpoint=name, step=step), "a", 0)
        run.event(done, CheckpointFinalized(checkpoint=name, step=step), "a", 0)
    run.exit("a", 800, signal=9, by="kernel")
    run.event(801, RestartPhase(layer="launcher", phase="stop_workers", state="began"))
    run.event(803, RestartPhase(layer="launcher", phase="spawn", state="began"))
    run.start("b", 805, layer="launcher")
    run.phase("b", "checkpoint_load", 817, None)
    run.exit("b", 825, signal=9, by="kernel")
    run.event(825.5, RestartPhase(layer="launcher", phase="stop_workers", state="began"))
    run.event(826, RestartPhase(layer="launcher", phase="spawn", state="began"))
    run.start("c", 830, layer="launcher")
    run.phase("c", "model", 830, 841)
    run.phase("c", "checkpoint_load", 841, 849)
    run.event(849, CheckpointLoadFailed(checkpoint="B", step=700), "c", 0)
    run.phase("c", "checkpoint_load", 849, 858)
    run.event(858, Resumed(completed=400, checkpoint="A", requested="B"), "c", 0)
    run.exit("c", run.steps("c", 401, 500, 860, 1), code=0, by="itself")
    run.end(1360)
    ledger = naive_ledger(run.envelopes(), run.absolute(1360))
    assert seconds(ledger.categories) == {
        "productive": 900,
        "rolled_back": 400,
        "stalled": 1,
        "restart": 50,
        "checkpoint_load": 9,
    }
    assert seconds(ledger.parts["productive"]) == {"durable": 400, "at_risk": 500}
    assert (ledger.attempts, ledger.failed_starts) == (3, 1)
    assert ledger.rollbacks == [("c", 400)]


def test_a_step_cut_short_by_an_exception_is_rolled_back_in_part() -> None:
    run = Scenario("four-1")
    run.start("a", 0)
    run.steps("a", 1, 10, 0, 10)
    run.event(104, Fault(kind="exception", phase="step", step=11), "a", 0)
    run.exit("a", 107, code=1, by="itself")
    run.start("b", 107)
    run.exit("b", run.steps("b", 11, 1, 107, 10), code=0, by="itself")
    run.end(117)
    ledger = naive_ledger(run.envelopes(), run.absolute(117))
    assert seconds(ledger.categories) == {"productive": 110, "rolled_back": 4, "stalled": 3}
    assert seconds(ledger.parts["rolled_back"]) == {"partial": 4}


@pytest.mark.parametrize("seed", range(60))
def test_every_nanosecond_of_a_random_run_has_one_owner(seed: int) -> None:
    envelopes = random_run(seed)
    ledger = naive_ledger(envelopes, random_as_of(seed, envelopes))
    if ledger.start is not None and ledger.end is not None:
        assert sum(ledger.categories.values()) == ledger.end - ledger.start
        assert all(time > 0 for time in ledger.categories.values())


@pytest.mark.parametrize("seed", range(30))
def test_order_and_repetition_change_nothing(seed: int) -> None:
    envelopes = random_run(seed)
    as_of = random_as_of(seed, envelopes)
    shuffled = random.Random(seed).choices(envelopes, k=5) + envelopes[::-1]  # noqa: S311
    assert naive_ledger(shuffled, as_of) == naive_ledger(envelopes, as_of)


@pytest.mark.parametrize("feature", FEATURES)
def test_any_feature_can_be_left_out_of_a_random_run(feature: str) -> None:
    for seed in range(2):
        envelopes = random_run(seed, frozenset({feature}))
        naive_ledger(envelopes, random_as_of(seed, envelopes))


def test_a_random_run_without_features_is_plain() -> None:
    names = {e.event.name for s in range(20) for e in random_run(s, frozenset(FEATURES))}
    assert "steps" in names
    assert not names & {"fault", "stop.announced", "steps.summary", "heartbeat", "clock"}
