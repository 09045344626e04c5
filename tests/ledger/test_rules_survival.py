"""Rules 7 and 10 to 12: which steps survive, and which of them a durable checkpoint holds."""

import pytest

from reckoning import book, parts, spent

FIRST = """
    0       attempt A launcher
    0-100   steps 1-10
    50      scheduled c5
"""
LAST = """
    100     exit code=1 by=itself
    100     attempt B launcher
"""


@pytest.mark.parametrize(
    ("saved", "ended", "expected"),
    [
        (True, "run_ended completed", {"durable": 50, "at_risk": 50}),
        (True, "run_ended failed", {"durable": 50}),
        (True, "run_ended stopped", {"durable": 50, "at_risk": 50}),
        (False, "run_ended failed", {"at_risk": 100}),
        (True, "exit code=0 by=itself", {"durable": 50, "at_risk": 50}),
    ],
)
def test_rule_7_steps_at_risk_are_lost_with_a_failed_run_that_ever_saved(saved, ended, expected):
    text = FIRST if saved else "\n".join(FIRST.splitlines()[:-1])
    finalized = "55 finalized c5" if saved else ""
    assert parts(f"{text}\n{finalized}\n100 {ended}", 100, "productive") == expected


def test_rule_7_a_checkpoint_that_was_only_scheduled_was_reported():
    text = FIRST + "100 run_ended failed"
    assert spent(text, 100) == {"rolled_back": 100}


def test_rule_10_steps_survive_along_the_chain_of_resumes():
    text = (
        FIRST
        + LAST
        + """
        100     resumed 5 from=c5
        100-150 steps 6-10
        150     scheduled c10
        160-200 steps 11-14
        200     exit code=1 by=itself
        200     attempt C launcher
        200     resumed 10 from=c10
        200-220 steps 11-12
    """
    )
    assert spent(text, 220) == {"productive": 120, "rolled_back": 100}
    assert book(text, 220).steps.surviving == 12


def test_rule_10_a_deeper_resume_revises():
    text = (
        FIRST
        + LAST
        + """
        100     resumed 10
        100-200 steps 11-20
        200     exit code=1 by=itself
        200     attempt C launcher
        200     resumed 5 from=c5
        200-210 steps 6
    """
    )
    assert spent(text, 190) == {"productive": 190}
    assert spent(text, 210) == {"productive": 60, "rolled_back": 150}


def test_rule_10_a_failed_start_that_resumed_is_the_newest_state():
    text = (
        FIRST
        + LAST
        + """
        105     resumed 4
        110     exit code=1 by=itself
    """
    )
    assert spent(text, 110) == {"productive": 40, "rolled_back": 60, "restart": 10}


def test_rule_10_a_resume_after_the_last_step_is_the_newest_state():
    text = FIRST + "100-105 phase checkpoint_load\n105 resumed 5 from=c5\n110 exit code=1 by=itself"
    assert spent(text, 110)["rolled_back"] == 50


def test_rule_10_the_writer_is_who_scheduled_a_checkpoint_not_who_completed_it():
    text = """
        0       attempt A launcher
        0-100   steps 1-10
        100     scheduled c10
        100     exit code=1 by=itself
        100     attempt B launcher
        100     resumed 5
        100-140 steps 6-9
        140     finalized c10
        140     exit code=1 by=itself
        140     attempt C launcher
        140     resumed 10 from=c10
        140-150 steps 11
    """
    assert spent(text, 150) == {"productive": 110, "rolled_back": 40}


TWICE = """
    0       attempt A launcher
    0-100   steps 1-10
    100     scheduled c10
    105     finalized c10
    110     exit code=1 by=itself
    110     attempt B launcher
    110     resumed 5
    110-170 steps 6-10
    170     scheduled c10
    {known}
    180     exit code=1 by=itself
    180     attempt C launcher
    180     resumed 10 from=c10
    180-190 steps 11
"""


@pytest.mark.parametrize(
    ("known", "lost"), [("", 60), ("175 finalized c10", 50), ("185 finalized c10", 60)]
)
def test_rule_10_of_two_saves_of_one_name_the_newest_completed_by_then_was_read(known, lost):
    assert spent(TWICE.format(known=known), 190)["rolled_back"] == lost


@pytest.mark.parametrize(("known", "lost"), [("", 50), ("175 save_failed c10", 60)])
def test_rule_10_of_two_saves_never_completed_the_newest_that_did_not_fail_was_read(known, lost):
    text = TWICE.replace("105     finalized c10", "")
    assert spent(text.format(known=known), 190)["rolled_back"] == lost


def test_rule_10_lineage_runs_over_the_segments_of_one_attempt():
    text = (
        FIRST
        + """
        100-105 phase checkpoint_load
        105     resumed 5 from=c5
        105-155 steps 6-10
    """
    )
    assert spent(text, 155) == {"productive": 100, "rolled_back": 50, "checkpoint_load": 5}


def test_rule_10_a_step_number_that_falls_opens_a_segment_without_a_word():
    text = """
        0       attempt A launcher
        0-100   steps 1-10
        100-150 steps 6-10
    """
    found = book(text, 150)
    assert spent(text, 150) == {"productive": 100, "rolled_back": 50}
    assert (found.steps.executed, found.steps.rework) == (15, 5)


def test_rule_11_without_a_word_the_first_step_tells_what_was_restored():
    text = FIRST + LAST + "100-150 steps 8-12"
    assert spent(text, 150) == {"productive": 120, "rolled_back": 30}


def test_rule_11_the_step_number_wins_over_the_record():
    text = FIRST + LAST + "100 resumed 10\n100-110 steps 10"
    found = book(text, 110)
    assert spent(text, 110) == {"productive": 100, "rolled_back": 10}
    assert found.steps.rework == 1


def test_rule_11_without_a_checkpoint_the_parent_is_the_newest_attempt_with_that_step():
    text = (
        FIRST
        + LAST
        + """
        100     resumed 5
        100-150 steps 6-10
        150     exit code=1 by=itself
        150     attempt C launcher
        150     resumed 8
        150-160 steps 9
    """
    )
    # B's range (5, 10] contains step 8, so A's steps 6-10 are gone and B's up to 8 are not
    assert spent(text, 160) == {"productive": 90, "rolled_back": 70}


def test_rule_11_an_attempt_that_began_above_a_step_is_not_its_parent():
    text = (
        FIRST
        + LAST
        + """
        100     resumed 20
        100-200 steps 21-30
        200     exit code=1 by=itself
        200     attempt C launcher
        200     resumed 8
        200-210 steps 9
    """
    )
    assert spent(text, 210) == {"productive": 90, "rolled_back": 120}


def test_rule_11_inherited_steps_take_no_time():
    text = """
        0       attempt A launcher
        0       resumed 1000
        0-100   steps 1001-1010
    """
    assert spent(text, 100) == {"productive": 100}
    assert book(text, 100).steps.surviving == 10


def test_rule_12_a_checkpoint_is_durable_once_completed_or_resumed_from():
    assert parts(FIRST, 100, "productive") == {"at_risk": 100}
    assert parts(FIRST + "70 finalized c5", 100, "productive") == {"durable": 50, "at_risk": 50}
    resumed = FIRST + LAST + "100 resumed 5 from=c5\n100-110 steps 6"
    assert parts(resumed, 110, "productive") == {"durable": 50, "at_risk": 10}
    loaded = FIRST + "70 loaded c5"
    assert parts(loaded, 100, "productive") == {"at_risk": 100}


def test_rule_12_a_load_that_failed_revokes_from_then_on():
    text = FIRST + "70 finalized c5" + LAST + "110 load_failed c5\n120-130 steps 11"
    assert parts(text, 105, "productive") == {"durable": 50, "at_risk": 50}
    assert parts(text, 130, "productive") == {"at_risk": 110}
    again = text + "\n130 exit code=1 by=itself\n130 attempt C launcher\n130 resumed 5 from=c5"
    assert parts(again, 130, "productive") == {"durable": 50}


def test_rule_12_a_save_that_failed_holds_nothing():
    text = FIRST + "70 save_failed c5"
    assert parts(text, 100, "productive") == {"at_risk": 100}


@pytest.mark.parametrize(
    ("tier", "durable"), [("memory", False), ("local", True), ("shared", True)]
)
def test_rule_12_memory_keeps_nothing_safe(tier, durable):
    text = f"{FIRST} tier={tier}".replace("c5\n tier", "c5 tier") + "\n70 finalized c5"
    assert ("durable" in parts(text, 100, "productive")) is durable


def test_rule_12_only_checkpoints_on_the_chain_hold_steps():
    text = (
        FIRST
        + "70 finalized c5"
        + LAST
        + """
        100     resumed 3
        100-200 steps 4-13
    """
    )
    assert parts(text, 200, "productive") == {"at_risk": 130}


def test_steps_whose_records_were_lost_are_no_steps_done_before():
    text = """
        0       attempt A launcher
        0-10    steps 1-10
        20-30   steps 21-30
    """
    counts = book(text, 30).steps
    assert (counts.executed, counts.rework, counts.surviving) == (20, 0, 20)
