"""When a simulated run needs a person, and when it mends itself."""

import pytest

from headway.events import AttemptStarted, CheckpointFailed, Resumed, RunConfigured
from headway.simulate import Plan, Recovery, Straggler, Strike, Trouble, simulate
from headway.simulate.month import month
from headway.simulate.needs import NEEDS
from headway.simulate.plan import HOUR, MINUTE, SECOND, Writing

KINDS = (
    Trouble(label="crash", cause="exception", symptom="exception"),
    Trouble(label="gpu", cause="gpu_fault", symptom="health_check", xid=79),
    Trouble(label="hang", cause="hang", symptom="hang", detection=2 * HOUR, by_person=True),
    Trouble(
        label="stop", cause="preemption", symptom="stop", layer="scheduler", reason="preemption"
    ),
)
RECOVERY = {
    "launcher": Recovery(detection=30 * SECOND, start=60 * SECOND, load=20 * SECOND),
    "scheduler": Recovery(queue=20 * MINUTE, start=60 * SECOND, load=20 * SECOND),
}


def made(*strikes, **more):
    """Return a run of six hours at ten seconds a step, a save every quarter of an hour."""
    plan = Plan(
        nodes=2,
        duration=6 * HOUR,
        step_time=10 * SECOND,
        checkpoint_interval=90,
        background=MINUTE,
        troubles=KINDS,
        strikes=strikes,
        recovery=RECOVERY,
        **more,
    )
    return simulate(plan, 3)


def needs(simulated):
    """Return each need with its begin and end in minutes."""
    return [
        (one.kind, round(one.begin / MINUTE), round(one.end / MINUTE))
        for one in simulated.truth.needs
    ]


def attempts(simulated):
    found = [e.event for e in simulated.events if isinstance(e.event, AttemptStarted)]
    return [one for one in found if one.layer != "none"]


def test_what_mends_itself_needs_nobody():
    assert needs(made(Strike(trouble="crash", at=HOUR), Strike(trouble="stop", at=3 * HOUR))) == []


@pytest.mark.parametrize("in_startup", [False, True])
def test_what_stays_breaks_every_attempt_until_somebody_mends_it(in_startup):
    stays = Strike(
        trouble="crash",
        at=HOUR,
        until=2 * HOUR,
        after=0 if in_startup else 5 * MINUTE,
        in_startup=in_startup,
    )
    simulated = made(stays)
    ((kind, begin, end),) = needs(simulated)
    assert (kind, end) == ("loop", 120)
    assert 60 <= begin < 70, "from when it strikes again"
    assert len(attempts(simulated)) > 8
    assert simulated.truth.surviving_steps > 1_500, "it trains again afterwards"


def test_a_hang_that_nothing_watches_needs_a_person_until_one_ends_it():
    assert needs(made(Strike(trouble="hang", at=HOUR))) == [("hang", 60, 180)]


def test_a_run_that_no_layer_starts_again_is_down_until_a_person_starts_it():
    simulated = made(Strike(trouble="crash", at=HOUR, away=90 * MINUTE))
    assert needs(simulated) == [("down", 60, 150)]
    assert [one.layer for one in attempts(simulated)] == ["scheduler", "scheduler"]


def test_a_layer_without_restarts_leaves_the_run_to_a_person():
    strikes = [Strike(trouble="crash", at=hour * HOUR) for hour in (1, 2, 3)]
    simulated = made(*strikes, limits={"launcher": 2}, absence=HOUR)
    assert sorted(needs(simulated)) == [
        ("down", 180, 240),
        ("few_restarts", 60, 180),
        ("last_restart", 120, 180),
    ]


def test_a_checkpoint_that_is_not_found_is_needed_until_the_run_is_beyond_it():
    simulated = made(Strike(trouble="stop", at=2 * HOUR, forgets=2))
    ((kind, begin, end),) = needs(simulated)
    assert kind == "forgotten"
    assert 140 < begin < end < 180
    resumed = [e.event.completed for e in simulated.events if isinstance(e.event, Resumed)]
    assert resumed[-1] % 90 == 0
    assert resumed[-1] < simulated.truth.incidents[0].highest - 90


def test_a_broken_gpu_is_a_ticket_even_if_the_run_recovers():
    assert [kind for kind, _, _ in needs(made(Strike(trouble="gpu", at=HOUR)))] == ["broken_gpu"]


def test_saves_that_fail_or_are_slow_are_tickets():
    fail = made(writings=(Writing(begin=HOUR, end=2 * HOUR, background=None),))
    assert [kind for kind, _, _ in needs(fail)] == ["saves_fail"]
    assert sum(isinstance(e.event, CheckpointFailed) for e in fail.events) == 4
    slow = made(writings=(Writing(begin=HOUR, end=2 * HOUR, background=14 * MINUTE),))
    assert [kind for kind, _, _ in needs(slow)] == ["writes_slow"]


def test_a_resized_run_goes_on_with_other_nodes():
    simulated = made(Strike(trouble="stop", at=HOUR, nodes=3, queue=5 * MINUTE))
    assert [one.world_size for one in attempts(simulated)] == [16, 24]
    assert needs(simulated) == []


@pytest.mark.parametrize(("rank", "kind"), [(0, "starved"), (5, "straggler")])
def test_whoever_waits_for_data_is_told_from_one_slow_rank(rank, kind):
    late = Straggler(rank=rank, first_step=300, last_step=600, excess=15 * SECOND)
    ((found, begin, end),) = needs(made(stragglers=(late,)))
    assert found == kind
    assert 100 < end - begin < 140


def test_a_month_is_the_same_for_the_same_seed_and_has_every_kind_of_run():
    found = list(month(5, runs=20, days=4))
    again = list(month(5, runs=20, days=4))
    assert [one.simulated.truth for one in found] == [one.simulated.truth for one in again]
    assert {need.kind for one in found for need in one.simulated.truth.needs} <= NEEDS.keys()
    quiet = [one for one in found if not one.simulated.truth.needs]
    assert 0 < len(quiet) < len(found)
    told = [e.event for e in found[0].simulated.events if isinstance(e.event, RunConfigured)]
    assert told[0].timeouts == {"process_group": 600 * SECOND}
