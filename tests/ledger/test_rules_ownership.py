"""Rules 13, 14 and 16: who owns a moment when several things could."""

from reckoning import parts, spent

STEADY = """
    0       attempt A launcher
    0-100   steps 1-10
"""


def test_rule_13_a_failed_start_is_whole_whatever_happened_in_it():
    text = """
        0       attempt A launcher
        0-10    phase import
        10-30   phase checkpoint_load
        30-40   phase evaluation
        35      stop sigterm
        50      exit signal=15 by=scheduler
    """
    assert spent(text, 50) == {"restart": 50}
    assert parts(text, 50, "restart") == {"failed_start": 50}


def test_rule_13_completed_steps_and_closed_phases_go_before_an_announced_stop():
    text = (
        STEADY
        + """
        95      stop preemption
        100-110 steps 11
        112-120 phase evaluation
        130     exit signal=15 by=scheduler
    """
    )
    assert spent(text, 130) == {"productive": 110, "restart": 12, "evaluation": 8}


def test_rule_13_an_announced_stop_goes_before_a_stall():
    text = (
        STEADY
        + """
        100     stop preemption
        105     fault exception
        130     exit signal=15 by=scheduler
    """
    )
    assert spent(text, 130) == {"productive": 100, "restart": 30}


def test_rule_13_a_stall_goes_before_the_gap_after_the_last_step():
    text = STEADY + "105 fault network\n120 exit code=1 by=itself"
    assert spent(text, 120) == {"productive": 100, "stalled": 20}


def test_rule_14_the_innermost_phase_owns_its_time():
    text = (
        STEADY
        + """
        100-130 phase evaluation
        110-115 phase checkpoint_save
        130-140 steps 11
    """
    )
    assert spent(text, 140) == {"productive": 110, "evaluation": 25, "checkpoint_save": 5}


def test_rule_14_a_phase_that_crosses_a_step_is_inside_it():
    text = STEADY + "95-105 phase custom:check\n105-115 steps 11"
    assert spent(text, 115) == {"productive": 105, "custom:check": 10}


def test_rule_14_a_phase_around_whole_steps_is_outside_them():
    text = STEADY + "0-105 phase custom:epoch\n105-115 steps 11"
    assert spent(text, 115) == {"productive": 110, "custom:epoch": 5}


def test_rule_14_a_completed_step_closes_what_was_left_open_before_it():
    text = STEADY + "100 phase evaluation\n110-120 steps 11\n115 phase custom:x\n120-130 steps 12"
    assert spent(text, 130) == {"productive": 115, "evaluation": 10, "custom:x": 5}


def test_rule_14_a_wait_is_clipped_to_the_gap_before_its_step():
    text = """
        0       attempt A launcher
        0-100   steps 1-10
        102-105 phase evaluation
        88-118  steps 11 each=10 wait=20
    """
    assert spent(text, 118) == {"productive": 112, "evaluation": 3, "data_wait": 3}


def test_rule_14_a_wait_reaches_back_to_the_previous_step_at_most():
    text = STEADY + "88-118 steps 11 each=10 wait=20"
    assert spent(text, 118) == {"productive": 110, "data_wait": 8}


def test_rule_14_the_waits_of_a_summary_lie_in_its_steps():
    text = STEADY + "100-140 summary 11-14 wait=12"
    assert spent(text, 140) == {"productive": 128, "data_wait": 12}
    # the phase takes the first 5 s of step 11, whose 3 s of waiting come after it
    taken = text + "\n100-105 phase evaluation"
    assert spent(taken, 140) == {"productive": 123, "data_wait": 12, "evaluation": 5}


def test_rule_16_a_gap_belongs_to_the_step_up_to_one_usual_period():
    text = STEADY + "125-135 steps 11"
    assert spent(text, 135) == {"productive": 120, "unattributed": 15}


def test_rule_16_without_five_periods_a_gap_belongs_to_the_step_up_to_a_second():
    text = """
        0       attempt A launcher
        0-50    steps 1-5
        55-65   steps 6
    """
    assert spent(text, 65) == {"productive": 61, "unattributed": 4}


def test_rule_16_a_new_attempt_begins_with_the_period_of_the_one_before():
    text = (
        STEADY
        + """
        100     exit code=1 by=itself
        100     attempt B launcher
        100-110 steps 11
        125-135 steps 12
    """
    )
    assert spent(text, 135) == {"productive": 130, "unattributed": 5}


def test_rule_16_what_phases_cover_is_no_gap():
    text = STEADY + "105-120 phase evaluation\n125-135 steps 11"
    assert spent(text, 135) == {"productive": 120, "evaluation": 15}


def test_rule_16_after_a_clean_end_the_last_step_owns_one_period():
    text = STEADY + "500 exit code=0 by=itself\n500 run_ended completed"
    assert spent(text, 500) == {"productive": 110, "unattributed": 390}
