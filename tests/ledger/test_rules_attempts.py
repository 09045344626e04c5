"""Rules 8, 9, 17 and 18: when attempts begin and end, overlap, and what their start consists of."""

from reckoning import book, parts, spent
from timeline import SECOND, at

BROKEN = """
    0       attempt A launcher
    0-100   steps 1-10
    100     exit code=1 by=itself
"""


def test_rule_8_an_attempt_begins_with_its_first_process_and_ends_with_its_last():
    text = """
        5       attempt A launcher rank=1
        0       attempt A launcher rank=0
        10-110  steps 1-10 rank=0..1
        112     exit rank=0 code=0 by=itself
        115     exit rank=1 code=0 by=itself
    """
    (attempt,) = book(text, 200).attempts
    assert (attempt.start, attempt.end) == (at(0), at(115))


def test_rule_8_an_end_nobody_recorded_is_the_last_sign_of_life():
    text = """
        0       attempt A launcher
        0-100   steps 1-10
        130     heartbeat
        200     attempt B launcher
        200-210 steps 11
    """
    assert spent(text, 210) == {"productive": 110, "unattributed": 30, "down": 70}
    assert book(text, 210).flags[0] == "unwitnessed end of attempt 1"


def test_rule_8_a_record_after_its_exit_does_not_prolong_a_rank():
    text = BROKEN + "130 heartbeat\n200 attempt B launcher\n200-210 steps 11"
    assert spent(text, 210) == {"productive": 110, "down": 100}


def test_rule_8_a_failed_start_lasts_to_its_exit_or_else_its_last_evidence():
    failed = (
        BROKEN
        + """
        110     attempt F launcher
        120     heartbeat
        {exit}
        200     attempt B launcher
        200-300 steps 11-20
    """
    )
    witnessed = spent(failed.format(exit="150 exit code=1 by=itself"), 300)
    assert witnessed == {"productive": 200, "down": 60, "restart": 40}
    unwitnessed = spent(failed.format(exit=""), 300)
    assert unwitnessed == {"productive": 200, "down": 90, "restart": 10}


def test_rule_9_completed_steps_own_their_time_and_the_survivors_first():
    text = """
        0       attempt A launcher
        0-100   steps 1-10
        60      attempt B launcher rank=1
        80-160  steps 11-18 rank=1
        160     exit code=0 rank=1 by=itself
        100     exit code=0 rank=0 by=itself
    """
    # B trains on from A's last step, so both survive; B's start yields to A's steps
    found = book(text, 160)
    assert {n: a / SECOND for n, a in found.categories.items() if a} == {"productive": 160}
    assert "split_brain" in found.flags


def test_rule_9_a_discarded_step_yields_to_one_that_survives():
    text = """
        0       attempt A launcher
        0-100   steps 1-10
        50      attempt B launcher rank=1
        50-150  steps 6-15 rank=1
    """
    assert spent(text, 150) == {"productive": 150}


def test_rule_9_a_step_of_an_older_attempt_that_survives_goes_before_a_newer_one():
    text = """
        0       attempt A launcher
        0-100   steps 1-10
        100     scheduled c10
        100     finalized c10
        60      attempt B launcher rank=1
        80-120  steps 3-6 rank=1
        120     exit rank=1 code=1 by=itself
        120     attempt C launcher
        120     resumed 10 from=c10
        120-130 steps 11
    """
    assert spent(text, 130) == {"productive": 110, "rolled_back": 20}


def test_rule_9_the_newest_attempt_owns_what_is_no_step():
    text = """
        0       attempt A launcher
        0-50    steps 1-5
        50-100  phase evaluation
        60      attempt B launcher rank=1
        60-90   phase checkpoint_load rank=1
        90-100  steps 6 rank=1
    """
    assert spent(text, 100) == {
        "productive": 60,
        "evaluation": 10,
        "checkpoint_load": 30,
    }


def test_rule_17_the_first_attempts_start_is_startup_and_later_ones_restart():
    text = """
        0       attempt A launcher
        20-120  steps 1-10
        120     exit code=1 by=itself
        120     attempt B launcher
        150-250 steps 11-20
    """
    assert spent(text, 250) == {"startup": 20, "productive": 200, "restart": 30}


def test_rule_17_loads_waits_evaluation_saves_and_custom_are_carved_out_but_no_warmup():
    text = """
        0       attempt A launcher
        0-10    phase import
        10-20   phase checkpoint_load
        20-30   phase evaluation
        30-40   phase warmup
        40-50   phase checkpoint_save
        50-60   phase custom:check
        60-70   phase data_wait
        80-90   steps 1
    """
    assert spent(text, 90) == {
        "startup": 30,
        "checkpoint_load": 10,
        "evaluation": 10,
        "checkpoint_save": 10,
        "custom:check": 10,
        "data_wait": 10,
        "productive": 10,
    }
    assert parts(text, 90, "startup") == {"import": 10, "warmup": 10, "other": 10}


def test_rule_17_only_the_load_it_trains_from_counts_as_a_load():
    text = (
        BROKEN
        + """
        100     attempt B launcher
        100-110 phase checkpoint_load
        110     load_failed c9
        110-114 phase checkpoint_load
        115-125 steps 11
    """
    )
    assert spent(text, 125) == {"productive": 110, "restart": 11, "checkpoint_load": 4}
    assert parts(text, 125, "restart") == {"load_failed": 10, "other": 1}


def test_rule_17_a_load_that_fails_between_steps_is_restart_too():
    text = """
        0       attempt A launcher
        0-100   steps 1-10
        100-110 phase checkpoint_load error=corrupt
        110-114 phase checkpoint_load
        114     resumed 5
        114-124 steps 6
    """
    assert spent(text, 124) == {
        "productive": 60,
        "rolled_back": 50,
        "restart": 10,
        "checkpoint_load": 4,
    }


def test_rule_17_a_first_attempt_without_a_step_is_restart():
    text = """
        0       attempt A launcher
        10-20   phase checkpoint_load
        30      exit code=1 by=itself
        30      attempt B launcher
        40-50   steps 1
    """
    assert spent(text, 50) == {"restart": 40, "productive": 10}


def test_rule_17_a_launchers_work_before_the_first_attempt_is_startup():
    text = """
        0       launcher rendezvous
        10      attempt A launcher
        20-30   steps 1
    """
    assert spent(text, 30) == {"startup": 20, "productive": 10}


def test_rule_17_a_watchdog_in_a_start_is_stalled():
    text = """
        0       attempt A launcher
        100     fault heartbeat_timeout ran_for=60
        105     exit signal=9 by=launcher
    """
    assert spent(text, 105) == {"restart": 40, "stalled": 65}


def test_rule_18_where_no_phase_was_recorded_the_checkpoint_tells_what_it_blocked():
    text = """
        0       attempt A launcher
        0-50    steps 1-5
        60      scheduled c5 blocking=10
        60-110  steps 6-10
        {phase}
    """
    unrecorded, recorded = text.format(phase=""), text.format(phase="55-60 phase checkpoint_save")
    assert spent(unrecorded, 110) == {"productive": 100, "checkpoint_save": 10}
    assert spent(recorded, 110) == {"productive": 101, "checkpoint_save": 5, "unattributed": 4}


def test_an_attempt_says_what_ended_it():
    text = """
        0       attempt A launcher
        0-10    steps 1-10
        10      stop preemption
        11      exit code=0 by=itself
        20      attempt B launcher
        25      exit code=1 by=itself
        30      attempt C launcher
        31-41   steps 11-20
        41      exit signal=9
        50      attempt D launcher
    """
    told = [attempt.ended_by for attempt in book(text, 60).attempts]
    assert told == ["stop", "fault", "fault", None]
