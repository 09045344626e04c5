"""One small timeline per choice that the rules leave open; the numbers are those of README.md."""

from collections.abc import Mapping

from headway.events import (
    AttemptEnded,
    CheckpointFinalized,
    CheckpointLoadFailed,
    CheckpointScheduled,
    Fault,
    Heartbeat,
    PhaseBegan,
    PhaseEnded,
    RestartPhase,
    Resumed,
    StepsSummary,
    StopAnnounced,
)
from oracle.naive_ledger import NaiveLedger, naive_ledger
from oracle.scenario import SECOND, Scenario


def ask(run: Scenario, as_of: float) -> NaiveLedger:
    return naive_ledger(run.envelopes(), run.absolute(as_of))


def seconds(times: Mapping[str, int]) -> dict[str, float]:
    return {name: time / SECOND for name, time in times.items() if time}


def steady(run: Scenario, steps: int = 10) -> float:
    """Attempt a does steps of 10 s from time 0 on."""
    run.start("a", 0)
    return run.steps("a", 1, steps, 0, 10)


def test_03_a_step_that_crosses_the_moment_of_asking_does_not_count() -> None:
    run = Scenario()
    steady(run)
    assert seconds(ask(run, 45).categories) == {"productive": 40, "unattributed": 5}


def test_03_a_summary_that_crosses_it_counts_for_the_steps_before() -> None:
    run = Scenario()
    run.start("a", 0)
    run.summary("a", 1, 10, 0, 100)
    assert seconds(ask(run, 45).categories) == {"productive": 40, "unattributed": 5}


def test_07_an_attempt_without_exits_ends_at_its_last_record() -> None:
    run = Scenario()
    steady(run)
    run.event(130, Heartbeat(), "a", 0)
    run.start("b", 200)
    run.steps("b", 11, 1, 200, 10)
    expected = {"productive": 110, "unattributed": 30, "down": 70}
    assert seconds(ask(run, 210).categories) == expected


def test_08_a_run_that_ends_without_an_exit_ends_clean() -> None:
    run = Scenario()
    steady(run)
    run.end(125)
    assert seconds(ask(run, 125).categories) == {"productive": 110, "unattributed": 15}


def test_09_a_silent_day_abandons_the_run_and_a_later_attempt_revises_it() -> None:
    run = Scenario()
    steady(run)
    run.event(50, CheckpointScheduled(checkpoint="c", step=5), "a", 0)
    run.event(50, CheckpointFinalized(checkpoint="c", step=5), "a", 0)
    day = 24 * 3600
    assert seconds(ask(run, 99 + day).categories) == {"productive": 100, "stalled": day - 1}
    assert seconds(ask(run, 100 + day).categories) == {"productive": 50, "rolled_back": 50}
    run.start("b", 200 + day)
    run.exit("b", run.steps("b", 11, 1, 200 + day, 10), code=0, by="itself")
    assert seconds(ask(run, 210 + day).categories) == {"productive": 110, "down": 100 + day}


def test_11_steps_of_an_older_attempt_go_before_a_failed_start() -> None:
    run = Scenario()
    run.start("f", 50)
    run.exit("f", 70, code=1, by="itself")
    run.exit("a", steady(run), code=0, by="itself")
    run.end(100)
    assert seconds(ask(run, 100).categories) == {"productive": 100}


def test_12_lineage_runs_over_the_segments_of_one_attempt() -> None:
    run = Scenario()
    run.event(50, CheckpointScheduled(checkpoint="c", step=5), "a", 0)
    run.phase("a", "checkpoint_load", 100, 105)
    steady(run)
    run.event(105, Resumed(completed=5, checkpoint="c"), "a", 0)
    run.exit("a", run.steps("a", 6, 5, 105, 10), code=0, by="itself")
    run.end(155)
    expected = {"productive": 100, "rolled_back": 50, "checkpoint_load": 5}
    assert seconds(ask(run, 155).categories) == expected


def test_12_the_writer_is_who_scheduled_it_and_a_deeper_resume_revises() -> None:
    run = Scenario()
    run.exit("a", steady(run), code=1, by="itself")
    run.event(100, CheckpointScheduled(checkpoint="c10", step=10), "a", 0)
    run.start("b", 100)
    run.steps("b", 6, 4, 100, 10)
    run.event(140, CheckpointFinalized(checkpoint="c10", step=10), "b", 0)
    run.exit("b", 140, code=1, by="itself")
    run.start("c", 140)
    run.event(140, Resumed(completed=10, checkpoint="c10"), "c", 0)
    run.exit("c", run.steps("c", 11, 1, 140, 10), code=0, by="itself")
    run.end(150)
    # As of 139 b's steps survive; c resumes from what a wrote, so a's do and b's do not.
    assert seconds(ask(run, 139).parts["rolled_back"]) == {"whole": 50}
    assert seconds(ask(run, 150).categories) == {"productive": 110, "rolled_back": 40}
    assert seconds(ask(run, 150).parts["productive"]) == {"durable": 100, "at_risk": 10}


def test_12_a_resume_without_a_step_revises_too() -> None:
    run = Scenario()
    run.exit("a", steady(run), code=1, by="itself")
    run.start("b", 100)
    run.event(105, Resumed(completed=4), "b", 0)
    run.exit("b", 110, code=1, by="itself")
    expected = {"productive": 40, "rolled_back": 60, "restart": 10}
    assert seconds(ask(run, 110).categories) == expected


def test_13_a_checkpoint_whose_load_failed_holds_nothing() -> None:
    run = Scenario()
    steady(run)
    for name, step in (("c3", 3), ("c9", 9)):
        run.event(95, CheckpointScheduled(checkpoint=name, step=step), "a", 0)
        run.event(96, CheckpointFinalized(checkpoint=name, step=step), "a", 0)
    run.exit("a", 100, code=1, by="itself")
    run.start("b", 100)
    run.event(105, CheckpointLoadFailed(checkpoint="c9"), "b", 0)
    run.exit("b", 110, code=1, by="itself")
    run.end(110, "failed")
    ledger = ask(run, 110)
    assert seconds(ledger.categories) == {"productive": 30, "rolled_back": 70, "restart": 10}
    assert seconds(ledger.parts["productive"]) == {"durable": 30}


def test_14_a_phase_around_whole_steps_is_outside_them() -> None:
    run = Scenario()
    run.phase("a", "custom:epoch", 0, 105)
    run.exit("a", steady(run), code=0, by="itself")
    run.exit("a", 105, code=0, by="itself")
    run.end(105)
    assert seconds(ask(run, 105).categories) == {"productive": 100, "custom:epoch": 5}


def test_15_a_completed_step_closes_the_phases_left_open_before_it() -> None:
    run = Scenario()
    run.start("a", 0)
    run.steps("a", 1, 5, 0, 10)
    run.phase("a", "evaluation", 50, None)
    run.steps("a", 6, 1, 60, 10)
    run.phase("a", "custom:inner", 64, None)
    run.exit("a", run.steps("a", 7, 1, 70, 10), code=0, by="itself")
    run.end(80)
    expected = {"productive": 64, "evaluation": 10, "custom:inner": 6}
    assert seconds(ask(run, 80).categories) == expected


def test_16_a_packed_wait_is_clipped_to_the_gap_before_its_step() -> None:
    run = Scenario()
    run.start("a", 0)
    run.steps("a", 1, 2, 0, 10)
    run.phase("a", "evaluation", 20, 25)
    run.steps("a", 3, 1, 8, 10, data_wait=20)  # starts at 28
    run.exit("a", 38, code=0, by="itself")
    run.end(38)
    expected = {"productive": 30, "evaluation": 5, "data_wait": 3}
    assert seconds(ask(run, 38).categories) == expected


def test_17_the_critical_rank_is_the_one_that_waited_most() -> None:
    run = Scenario()
    run.start("a", 0, (0, 1))
    run.steps("a", 1, 2, 0, 10, rank=0)
    run.steps("a", 1, 1, 0, 10, rank=1)
    run.steps("a", 2, 1, 10, 6, rank=1, data_wait=4)
    run.exit("a", 20, (0, 1), code=0, by="itself")
    run.end(20)
    assert seconds(ask(run, 20).categories) == {"productive": 16, "data_wait": 4}


def test_17_a_rank_that_ends_its_step_early_waits_within_the_step() -> None:
    run = Scenario()
    run.start("a", 0, (0, 1))
    run.steps("a", 1, 1, 0, 4, rank=0)
    run.steps("a", 1, 1, 0, 10, rank=1)
    run.exit("a", 10, (0, 1), code=0, by="itself")
    run.end(10)
    assert seconds(ask(run, 10).categories) == {"productive": 10}


def test_20_loads_up_to_the_last_failure_are_restart() -> None:
    run = Scenario()
    run.exit("a", steady(run), code=1, by="itself")
    run.start("b", 100)
    run.phase("b", "checkpoint_load", 100, 110)
    run.event(110, CheckpointLoadFailed(checkpoint="c9"), "b", 0)
    run.phase("b", "checkpoint_load", 110, 114)
    run.exit("b", run.steps("b", 11, 1, 115, 10), code=0, by="itself")
    run.end(125)
    ledger = ask(run, 125)
    assert seconds(ledger.categories) == {"productive": 110, "restart": 11, "checkpoint_load": 4}
    assert seconds(ledger.parts["restart"]) == {"load_failed": 10, "other": 1}


def test_22_a_gap_belongs_to_the_step_up_to_one_period() -> None:
    run = Scenario()
    steady(run)
    run.exit("a", run.steps("a", 11, 1, 125, 10), code=0, by="itself")
    run.end(135)
    assert seconds(ask(run, 135).categories) == {"productive": 120, "unattributed": 15}


def test_23_a_step_over_the_limit_keeps_the_usual_duration() -> None:
    run = Scenario()
    steady(run)
    run.exit("a", run.steps("a", 11, 1, 100, 101), code=0, by="itself")
    run.end(201)
    assert seconds(ask(run, 201).categories) == {"productive": 110, "stalled": 91}


def test_24_the_longest_step_of_a_summary_may_be_over_the_limit() -> None:
    run = Scenario()
    steady(run)
    long = StepsSummary(
        first_step=11,
        num_steps=5,
        duration=240 * SECOND,
        longest=200 * SECOND,
        longest_step=13,
    )
    run.event(340, long, "a", 0)
    run.exit("a", 340, code=0, by="itself")
    run.end(340)
    assert seconds(ask(run, 340).categories) == {"productive": 150, "stalled": 190}


def test_25_a_watchdog_in_a_failed_start_makes_it_stalled() -> None:
    run = Scenario()
    run.start("a", 0)
    run.event(100, Fault(kind="heartbeat_timeout", ran_for=60 * SECOND), "a", 0)
    run.exit("a", 105, signal=9, by="launcher")
    assert seconds(ask(run, 105).categories) == {"restart": 40, "stalled": 65}


def test_26_the_death_of_a_process_follows_from_its_exception() -> None:
    run = Scenario()
    run.start("a", 0, (0, 1))
    for rank in (0, 1):
        run.steps("a", 1, 10, 0, 10, rank=rank)
        run.phase("a", "step", 100, None, rank)
    run.event(104, Fault(kind="exception"), "a", 0)
    run.exit("a", 105, [0], code=1, by="itself")
    run.event(130, RestartPhase(layer="launcher", phase="stop_workers", state="began"))
    run.exit("a", 133, [1], signal=15, by="launcher")
    ledger = ask(run, 133)
    expected = {"productive": 100, "rolled_back": 4, "stalled": 26, "restart": 3}
    assert seconds(ledger.categories) == expected
    assert seconds(ledger.parts["restart"]) == {"teardown": 3}


def test_27_a_fault_that_a_completed_step_follows_stalls_nothing() -> None:
    run = Scenario()
    run.event(55, Fault(kind="network"), "a", 0)
    run.exit("a", steady(run), code=0, by="itself")
    run.end(100)
    assert seconds(ask(run, 100).categories) == {"productive": 100}


def test_28_a_phase_that_an_exception_ended_after_the_limit_is_stalled() -> None:
    run = Scenario()
    steady(run)
    run.event(100, PhaseBegan(phase="evaluation"), "a", 0)
    ended = PhaseEnded(phase="evaluation", duration=150 * SECOND, error="TimeoutError")
    run.event(250, ended, "a", 0)
    run.event(250, Fault(kind="exception"), "a", 0)
    run.exit("a", 252, code=1, by="itself")
    assert seconds(ask(run, 252).categories) == {"productive": 100, "stalled": 152}


def test_29_an_end_by_the_launcher_within_the_limit_is_unattributed() -> None:
    run = Scenario()
    steady(run)
    run.exit("a", 190, signal=9, by="launcher")
    assert seconds(ask(run, 190).categories) == {"productive": 100, "unattributed": 90}


def test_32_a_stop_is_teardown_less_its_save() -> None:
    run = Scenario()
    steady(run)
    run.event(95, StopAnnounced(reason="time_limit"), "a", 0)
    run.event(103, Fault(kind="exception"), "a", 0)
    run.phase("a", "checkpoint_save", 102, None)
    run.exit("a", 110, code=1, by="itself")
    expected = {"productive": 100, "restart": 2, "checkpoint_save": 8}
    assert seconds(ask(run, 110).categories) == expected


def test_32_a_stop_without_an_exit_has_no_effect() -> None:
    run = Scenario()
    steady(run)
    run.event(95, StopAnnounced(reason="time_limit"), "a", 0)
    assert seconds(ask(run, 110).categories) == {"productive": 100, "unattributed": 10}


def test_33_the_gap_after_a_clean_end_belongs_to_the_last_step_up_to_a_period() -> None:
    run = Scenario()
    steady(run)
    run.exit("a", 500, code=0, by="itself")
    run.end(500)
    assert seconds(ask(run, 500).categories) == {"productive": 110, "unattributed": 390}


def test_34_a_launcher_makes_restart_or_down_of_the_time_between() -> None:
    run = Scenario()
    run.exit("a", steady(run), code=0, by="itself")
    for begin, end, phase in ((100, 110, "backoff"), (110, 113, "spawn"), (120, 124, "rendezvous")):
        run.event(begin, RestartPhase(layer="launcher", phase=phase, state="began"))
        run.event(end, RestartPhase(layer="launcher", phase=phase, state="ended"))
    run.start("b", 130)
    run.steps("b", 11, 1, 130, 10)
    expected = {"productive": 110, "restart": 7, "down": 23}
    assert seconds(ask(run, 140).categories) == expected


def test_35_before_an_in_process_attempt_the_processes_live_on() -> None:
    run = Scenario()
    steady(run)
    run.event(100, AttemptEnded(), "a", 0)
    run.start("b", 120, layer="in_process")
    run.steps("b", 11, 1, 125, 10)
    assert seconds(ask(run, 135).categories) == {"productive": 110, "restart": 25}


def test_36_a_launchers_work_before_the_first_attempt_is_startup() -> None:
    run = Scenario()
    run.event(0, RestartPhase(layer="launcher", phase="wait_nodes", state="began"))
    run.event(10, RestartPhase(layer="launcher", phase="wait_nodes", state="ended"))
    run.event(10, RestartPhase(layer="launcher", phase="rendezvous", state="began"))
    run.start("a", 15)
    run.steps("a", 1, 1, 20, 10)
    assert seconds(ask(run, 30).categories) == {"down": 10, "startup": 10, "productive": 10}


def test_37_a_live_tail_is_the_open_phase_or_over_the_limit_stalled() -> None:
    run = Scenario()
    steady(run)
    run.event(103, PhaseBegan(phase="evaluation"), "a", 0)
    run.event(110, Heartbeat(open_phases=("evaluation",)), "a", 0)
    expected = {"productive": 100, "unattributed": 3, "evaluation": 17}
    assert seconds(ask(run, 120).categories) == expected
    assert seconds(ask(run, 201).categories) == {"productive": 100, "stalled": 101}
