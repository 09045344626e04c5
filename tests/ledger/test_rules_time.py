"""Rules 1 to 6: event time, what is known when, records that overlap, and when a run ends."""

from dataclasses import replace

import pytest

from headway.ledger import ledger
from reckoning import book, parts, spent
from timeline import SECOND, at, timeline

DAY = 86_400
STEADY = """
    0       attempt A launcher
    0-100   steps 1-10
"""
CHECKPOINT = """
    50      scheduled c5
    50      finalized c5
"""


def test_rule_1_a_node_behind_is_put_on_the_clock_that_was_measured():
    text = """
        0       clock 60
        0       attempt A launcher
        0-100   steps 1-10
        100     exit code=1 by=itself
        200     attempt B launcher rank=4
        200-300 steps 11-20 rank=4
    """
    assert spent(text, 300) == {"productive": 200, "down": 40}
    assert book(text, 300).start == at(60)


def test_rule_1_the_latest_offset_corrects_earlier_events_too():
    text = """
        0       clock 60
        0       attempt A launcher
        0-100   steps 1-10
        100     exit code=1 by=itself
        110     clock 80
        200     attempt B launcher rank=4
        200-300 steps 11-20 rank=4
    """
    assert spent(text, 300) == {"productive": 200, "down": 20}


def test_rule_1_a_stamp_of_the_day_after_tomorrow_is_set_aside_and_told():
    text = f"""
        0       attempt A launcher
        0-100   steps 1-10
        {3 * DAY} heartbeat rank=1
    """
    found = book(text, 100)
    assert found.elapsed == 100 * SECOND
    assert [(problem.kind, problem.count) for problem in found.problems] == [("absurd_time", 1)]


def test_rule_1_a_stamp_of_long_before_the_run_began_is_set_aside():
    text = f"""
        {40 * DAY}     run_started r
        0              attempt A launcher
        {40 * DAY}     attempt B launcher
        {40 * DAY}-{40 * DAY + 100} steps 1-10
    """
    found = book(text, 40 * DAY + 100)
    assert found.elapsed == 100 * SECOND
    assert [attempt.attempt for attempt in found.attempts] == ["B"]


def test_rule_2_a_step_that_ends_after_the_moment_of_asking_does_not_count():
    assert spent(STEADY, 45) == {"productive": 40, "unattributed": 5}


def test_rule_2_a_watchdog_counts_from_the_moment_it_spoke():
    text = (
        STEADY
        + """
        150     fault heartbeat_timeout ran_for=40
    """
    )
    assert spent(text, 149) == {"productive": 100, "unattributed": 49}
    assert spent(text, 150) == {"productive": 100, "unattributed": 10, "stalled": 40}


def test_rule_2_a_window_knows_what_came_after_it():
    text = (
        STEADY
        + """
        100     exit code=1 by=itself
        100     attempt B launcher
        100-200 steps 6-15
    """
    )
    then = +book(text, 100).amounts(at(40), at(60))
    assert then == {("productive", "at_risk"): 20 * SECOND}
    later = +book(text, 200).amounts(at(40), at(60))
    assert later == {
        ("productive", "at_risk"): 10 * SECOND,
        ("rolled_back", "whole"): 10 * SECOND,
    }


def test_rule_3_the_finest_record_of_a_step_wins():
    text = """
        0       attempt A launcher
        0-50    steps 1-5
        60-100  steps 6-10
        0-100   summary 1-10
        100     exit code=0 by=itself
    """
    assert spent(text, 100) == {"productive": 91, "unattributed": 9}
    assert book(text, 100).steps.executed == 10


def test_rule_3_a_summary_is_cut_into_equal_steps():
    text = """
        0       attempt A launcher
        0-100   summary 1-10
    """
    assert spent(text, 45) == {"productive": 40, "unattributed": 5}


def test_rule_3_a_summary_loses_no_nanosecond_to_its_parts():
    text = "0 attempt A launcher\n0-100 summary 1-3"
    assert spent(text, 100) == {"productive": 100}
    assert book(text, 66.7).categories["productive"] == 66_666_666_666


def test_rule_3_the_longest_step_of_a_summary_is_one_long_step():
    text = (
        STEADY
        + """
        100-340 summary 11-15 longest=200 longest_step=13
        340     exit code=0 by=itself
    """
    )
    assert spent(text, 340) == {"productive": 150, "stalled": 190}


def test_rule_3_a_summary_within_the_limit_is_spread_evenly():
    text = (
        STEADY
        + """
        100-200 summary 11-15 longest=60 longest_step=13
        200     exit code=0 by=itself
        200     attempt B launcher
        200-210 steps 13
    """
    )
    assert spent(text, 210) == {"productive": 150, "rolled_back": 60}


def test_rule_5_a_run_begins_with_the_gpus_it_held():
    text = """
        0       allocation 0
        20      allocation 4
        50      attempt A launcher
        50-150  steps 1-10
    """
    assert book(text, 150).start == at(20)
    assert spent(text, 150) == {"down": 30, "productive": 100}


def test_rule_5_a_launcher_is_evidence_of_a_run_and_a_wrapper_is_not():
    after = """
        50      attempt A launcher
        50-150  steps 1-10
    """
    assert book("20 launcher rendezvous" + after, 150).start == at(20)
    assert book(after + "20 wrapper abort rank=1", 150).start == at(50)


def test_rule_5_a_run_ends_when_it_says_so_and_is_provisional_until_then():
    live, closed = book(STEADY, 130), book(STEADY + "120 run_ended completed", 130)
    assert (live.state, live.provisional, live.closed_at) == ("running", True, at(130))
    assert (closed.state, closed.provisional, closed.closed_at) == ("completed", False, at(120))


def test_rule_5_a_signal_ends_the_attempt_and_never_the_run():
    text = (
        STEADY
        + """
        100     stop sigterm
        102     exit signal=15 by=scheduler
    """
    )
    assert book(text, 200).state == "running"


def test_rule_5_a_run_that_goes_on_had_not_ended():
    text = (
        STEADY
        + """
        100     run_ended failed
        150     attempt B launcher
        150-200 steps 11-15
    """
    )
    found = book(text, 200)
    assert (found.state, found.elapsed) == ("running", 200 * SECOND)


def test_rule_6_a_day_without_any_evidence_abandons_a_run():
    silent = STEADY + CHECKPOINT
    assert book(silent, 100 + DAY - 1).state == "running"
    assert book(silent, 100 + DAY).state == "abandoned"
    assert spent(silent, 100 + DAY) == {"productive": 50, "rolled_back": 50}


@pytest.mark.parametrize("word", ["note remembered", "acknowledged some-incident by=ann"])
def test_rule_6_what_people_say_about_a_run_does_not_keep_it_alive(word):
    text = STEADY + CHECKPOINT + f"2000 {word}"
    assert book(text, 100 + DAY).state == "abandoned"
    assert book(text, 100 + DAY).elapsed == 100 * SECOND


def test_rule_6_a_pending_job_keeps_a_run_alive():
    text = STEADY + "2000 launcher wait_nodes"
    assert book(text, 100 + DAY).state == "running"


def test_rule_6_a_later_attempt_revises_an_abandoned_run():
    text = (
        STEADY
        + CHECKPOINT
        + f"""
        110            launcher spawn
        {120 + DAY}    attempt B launcher
        {120 + DAY}-{130 + DAY} steps 11
    """
    )
    before = book(text, 110 + DAY)
    assert (before.state, before.elapsed) == ("abandoned", 110 * SECOND)
    assert "revised_after_abandonment" in book(text, 130 + DAY).flags
    assert "revised_after_abandonment" not in before.flags
    assert spent(text, 130 + DAY) == {"productive": 110, "down": 20 + DAY}


def test_rule_6_a_launchers_work_does_not_outlast_a_silent_day():
    text = (
        STEADY
        + f"""
        100            launcher rendezvous
        {200 + DAY}    attempt B launcher
        {200 + DAY}-{210 + DAY} steps 11
    """
    )
    assert parts(text, 210 + DAY, "down") == {"held": 100 + DAY}


def test_steps_that_name_no_attempt_are_told_and_own_no_time():
    nameless = [replace(event, attempt=None) for event in timeline(STEADY)]
    found = ledger(nameless, at(100))
    assert found.elapsed == 0
    assert [(problem.kind, problem.count) for problem in found.problems] == [("no_attempt", 10)]
