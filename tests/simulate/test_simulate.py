"""The simulator: its truth is its own, the ledger must find it again from the events alone."""

from collections import Counter

import pytest

from headway.incidents import incidents
from headway.ledger import Ledger, ledger
from headway.simulate import Plan, Recovery, Simulated, Strike, Trouble, Truth, simulate
from headway.simulate.plan import SECOND
from headway.wire import from_json, to_json
from made_up_plans import made_up_plan


def read(made: Simulated) -> Ledger:
    return ledger(made.events, made.end)


def told(found: Ledger) -> dict[str, object]:
    """What the ledger says, in the words of the truth."""
    return {
        "elapsed": found.elapsed,
        "categories": {name: time for name, time in found.categories.items() if time},
        "gpu_time": {name: time for name, time in found.gpu_time().items() if time},
        "highest": found.steps.highest,
        "executed": found.steps.executed,
        "surviving": found.steps.surviving,
        "attempts": len(found.attempts),
        "failed_starts": sum(attempt.outcome != "progressed" for attempt in found.attempts),
    }


def true(truth: Truth) -> dict[str, object]:
    return {
        "elapsed": truth.elapsed,
        "categories": truth.categories,
        "gpu_time": truth.gpu_time,
        "highest": truth.highest_step,
        "executed": truth.executed_steps,
        "surviving": truth.surviving_steps,
        "attempts": truth.attempts,
        "failed_starts": truth.failed_starts,
    }


def check(seed: int) -> None:
    made = simulate(made_up_plan(seed), seed)

    found = read(made)

    assert told(found) == true(made.truth), f"seed {seed}"
    assert [
        (
            one.cause,
            one.suspect_rank,
            one.suspect_node,
            one.layer,
            one.rollback_steps,
            len(one.attempts) - 1,
            one.closed is not None,
        )
        for one in incidents(found)
    ] == [
        (
            one.cause,
            one.suspect_rank,
            one.suspect_node,
            one.layer,
            one.rollback_steps,
            one.attempts,
            one.closed,
        )
        for one in made.truth.incidents
    ], f"seed {seed}"


@pytest.mark.parametrize("seed", range(40))
def test_the_ledger_finds_the_truth_of_a_made_up_run_to_the_nanosecond(seed: int) -> None:
    check(seed)


@pytest.mark.slow
def test_the_ledger_finds_the_truth_of_two_thousand_made_up_runs() -> None:
    for seed in range(1000, 3000):
        check(seed)


def test_the_same_seed_gives_the_same_run_and_another_one_another() -> None:
    plan = made_up_plan(0)

    first, again, other = simulate(plan, 7), simulate(plan, 7), simulate(plan, 8)

    assert first == again
    assert first.run != other.run


def test_events_survive_the_wire_and_are_numbered_without_a_gap() -> None:
    made = simulate(made_up_plan(4), 4)

    sequences = Counter[str]()
    for envelope in made.events:
        assert from_json(to_json(envelope)) == envelope
        assert envelope.first_sequence == sequences[envelope.producer]
        sequences[envelope.producer] = envelope.last_sequence + 1
    assert [e.wall for e in made.events] == sorted(e.wall for e in made.events)


def one_fault(symptom: str, cause: str, **recovery: int) -> Simulated:
    """Steps of 1 s, a free checkpoint every 10; rank 1 is struck at 25.25 s, in step 26."""
    return simulate(
        Plan(
            nodes=1,
            gpus_per_node=2,
            target_step=40,
            checkpoint_interval=10,
            troubles=(Trouble(label="fault", cause=cause, symptom=symptom),),
            strikes=(Strike(trouble="fault", at=25 * SECOND + SECOND // 4, rank=1),),
            recovery={"launcher": Recovery(**{k: v * SECOND for k, v in recovery.items()})},
        )
    )


def test_the_truth_of_an_exception_by_hand() -> None:
    # 25 steps, a quarter of the 26th, 3 s until it is noticed, 2 s teardown, 4 s back-off, 5 s
    # rendezvous, 6 s start, 7 s load of step 20, then the steps 21-40: 5 of the 25 are discarded.
    made = one_fault(
        "exception", "exception", detection=3, teardown=2, wait=4, rendezvous=5, start=6, load=7
    )

    assert made.truth.categories == {
        "productive": 40 * SECOND,
        "rolled_back": 5 * SECOND + SECOND // 4,
        "stalled": 3 * SECOND,
        "restart": (2 + 5 + 6) * SECOND,
        "down": 4 * SECOND,
        "checkpoint_load": 7 * SECOND,
    }
    assert made.truth.incidents[0].rollback_steps == 5
    assert made.truth.training_goodput == pytest.approx(40 / 72.25)
    assert made.truth.infrastructure_goodput == pytest.approx((72.25 - 20) / 72.25)


def test_a_killed_rank_has_no_time_of_its_own_so_the_stall_begins_with_the_last_step() -> None:
    # from the end of step 25 to 25.25 + 3
    made = one_fault("kill", "killed", detection=3)

    assert made.truth.categories["stalled"] == 3 * SECOND + SECOND // 4


def test_a_strike_before_the_first_step_makes_the_attempt_a_failed_start() -> None:
    plan = Plan(
        nodes=1,
        gpus_per_node=2,
        target_step=5,
        startup=10 * SECOND,
        troubles=(Trouble(label="fault", cause="killed", symptom="kill", rate=1e9),),
        duration=SECOND,
    )

    made = simulate(plan)

    assert made.truth.failed_starts == made.truth.attempts
    assert made.truth.categories == {"restart": made.truth.elapsed}
    assert told(read(made)) == true(made.truth)


def test_a_plan_that_never_gets_anywhere_is_refused_with_the_reason() -> None:
    plan = Plan(
        nodes=1,
        target_step=5,
        troubles=(Trouble(label="fault", cause="killed", symptom="kill", rate=1e12),),
    )

    with pytest.raises(ValueError, match="the plan makes no progress; lower its rates"):
        simulate(plan)


def test_a_plan_without_an_end_or_with_unknown_words_is_refused() -> None:
    with pytest.raises(ValueError, match="needs target_step or duration"):
        Plan()
    with pytest.raises(ValueError, match="unknown symptom 'cough'; known: exception"):
        Trouble(label="x", cause="exception", symptom="cough")
    with pytest.raises(ValueError, match="unknown trouble 'rain'; known: fault"):
        Plan(
            target_step=1,
            troubles=(Trouble(label="fault", cause="killed", symptom="kill"),),
            strikes=(Strike(trouble="rain", at=1),),
        )
    with pytest.raises(ValueError, match="give either at or after_step"):
        Strike(trouble="fault")
