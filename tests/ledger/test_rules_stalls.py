"""Rules 19 to 22 and 25: what is too long, when a fault began, and where a stall ends."""

import pytest

from reckoning import book, parts, spent

STEADY = """
    0       attempt A launcher
    0-100   steps 1-10
"""
PAIR = """
    0       attempt A launcher rank=0..1
    0-100   steps 1-10 rank=0..1
"""


def test_rule_19_a_step_over_ten_times_the_usual_is_stalled_beyond_the_usual():
    assert spent(STEADY + "100-200 steps 11", 200) == {"productive": 200}
    assert spent(STEADY + "100-201 steps 11", 201) == {"productive": 110, "stalled": 91}


def test_rule_19_no_limit_is_below_a_minute():
    quick = """
        0       attempt A launcher
        0-10    steps 1-10
        10-{end} steps 11
    """
    assert spent(quick.format(end=70), 70) == {"productive": 70}
    assert spent(quick.format(end=71), 71) == {"productive": 11, "stalled": 60}


def test_rule_19_phases_inside_a_step_do_not_make_it_too_long():
    text = STEADY + "110-150 phase evaluation\n100-201 steps 11"
    assert spent(text, 201) == {"productive": 161, "evaluation": 40}


def test_rule_19_an_attempts_first_step_never_stalls():
    text = STEADY + "100 exit code=1 by=itself\n100 attempt B launcher\n100-500 steps 11"
    assert spent(text, 500) == {"productive": 500}


def test_rule_19_fewer_than_five_steps_take_the_usual_of_the_attempt_before():
    text = (
        STEADY
        + """
        100     exit code=1 by=itself
        100     attempt B launcher
        100-110 steps 11
        110-{end} steps 12
    """
    )
    assert spent(text.format(end=210), 210) == {"productive": 210}
    assert spent(text.format(end=211), 211) == {"productive": 120, "stalled": 91}


def test_rule_19_without_a_usual_step_there_is_no_limit():
    text = "0 attempt A launcher\n0-10 steps 1\n10-2000 steps 2"
    assert spent(text, 2000) == {"productive": 2000}


def test_rule_19_the_usual_step_is_the_lower_median_of_the_last_hundred():
    text = """
        0         attempt A launcher
        0-10      steps 1
        10-1010   steps 2-101
        1010-3010 steps 102-201
        3010-3211 steps 202
    """
    # the last hundred steps took 20 s each, so 201 s are too many and 200 s are not
    assert spent(text, 3211) == {"productive": 3030, "stalled": 181}


def test_rule_20_an_exception_began_when_it_was_recorded():
    text = STEADY + "100 phase step\n104 fault exception\n107 exit code=1 by=itself"
    assert spent(text, 107) == {"productive": 100, "rolled_back": 4, "stalled": 3}
    assert parts(text, 107, "rolled_back") == {"partial": 4}


def test_rule_20_a_watchdog_began_when_it_began_to_wait():
    text = STEADY + "180 fault heartbeat_timeout {told}\n190 exit signal=9 by=launcher"
    ran = spent(text.format(told="ran_for=60 timeout=70"), 190)
    assert ran == {"productive": 100, "unattributed": 20, "stalled": 70}
    configured = spent(text.format(told="timeout=70"), 190)
    assert configured == {"productive": 100, "unattributed": 10, "stalled": 80}
    longer = spent(text.format(told="ran_for=200"), 190)
    assert longer == {"productive": 100, "stalled": 90}


def test_rule_20_other_faults_began_when_the_last_step_or_phase_was_done():
    text = STEADY + "100-120 phase evaluation\n150 fault network\n160 exit code=1 by=itself"
    assert spent(text, 160) == {"productive": 100, "evaluation": 20, "stalled": 40}


@pytest.mark.parametrize("by", ["launcher", "scheduler", "person"])
def test_rule_20_an_exit_by_others_is_no_fault(by):
    text = STEADY + f"150 exit signal=9 by={by}"
    assert spent(text, 150) == {"productive": 100, "unattributed": 50}
    assert book(text, 150).book.accounts[0].broken.fault is None


@pytest.mark.parametrize("how", ["signal=9 by=kernel", "signal=6", "code=1 by=itself"])
def test_rule_20_a_death_of_its_own_is_a_fault_since_the_last_step(how):
    assert spent(STEADY + f"150 exit {how}", 150) == {"productive": 100, "stalled": 50}


def test_rule_20_a_fault_that_a_completed_step_follows_stalls_nothing():
    text = STEADY + "100 fault network\n110-120 steps 11"
    assert spent(text, 120) == {"productive": 120}


def test_rule_20_a_consequence_does_not_move_the_start():
    text = (
        PAIR
        + """
        100     phase step rank=0..1
        104     fault exception rank=0
        105     exit rank=0 code=1 by=itself
        130     launcher stop_workers
        133     exit rank=1 signal=15 by=launcher
    """
    )
    assert spent(text, 133) == {"productive": 100, "rolled_back": 4, "stalled": 26, "restart": 3}


def test_rule_20_the_earliest_of_several_faults_counts():
    text = STEADY + "110 fault exception\n105 fault numerical\n120 exit code=1 by=itself"
    assert spent(text, 120) == {"productive": 100, "unattributed": 5, "stalled": 15}


def test_rule_16_the_gap_before_a_step_cut_short_belongs_to_it_up_to_the_limit():
    text = STEADY + "130 phase step\n140 fault exception\n140 exit code=1 by=itself"
    # ten seconds are the usual period, the twenty before them are nobody's
    assert spent(text, 140) == {"productive": 100, "unattributed": 20, "rolled_back": 20}


def test_rule_20_what_was_cut_short_over_its_limit_stalled_from_its_start():
    text = STEADY + "105 phase {name}\n{end} exit signal=9 by=launcher"
    long = spent(text.format(name="step", end=206), 206)
    assert long == {"productive": 100, "rolled_back": 5, "stalled": 101}
    short = spent(text.format(name="step", end=205), 205)
    assert short == {"productive": 100, "rolled_back": 105}
    kept = spent(text.format(name="evaluation", end=205), 205)
    assert kept == {"productive": 100, "unattributed": 5, "evaluation": 100}
    lost = spent(text.format(name="evaluation", end=206), 206)
    assert lost == {"productive": 100, "unattributed": 5, "stalled": 101}


def test_rule_20_an_end_over_the_limit_with_nothing_known_to_be_open_is_a_cut_step():
    text = STEADY + "{end} exit signal=9 by=launcher"
    assert spent(text.format(end=200), 200) == {"productive": 100, "unattributed": 100}
    assert spent(text.format(end=201), 201) == {"productive": 100, "stalled": 101}


@pytest.mark.parametrize(
    "evidence",
    [
        "130 wrapper abort rank=1",
        "130 launcher stop_workers",
        "130 exit rank=1 signal=6",
        "130 exit rank=1 signal=15 by=launcher",
    ],
)
def test_rule_21_a_stall_ends_at_the_first_evidence_of_teardown(evidence):
    text = PAIR + f"100 exit rank=0 signal=9 by=kernel\n{evidence}\n140 exit rank=1 signal=9"
    assert spent(text, 140) == {"productive": 100, "stalled": 30, "restart": 10}


def test_rule_21_the_faulting_ranks_abort_hook_counts_and_its_death_does_not():
    text = PAIR + "104 fault exception rank=0\n{hook}\n110 exit rank=0 signal=6 by=kernel"
    text += "\n130 exit rank=1 signal=15 by=launcher"
    silent = spent(text.format(hook=""), 130)
    assert silent == {"productive": 100, "unattributed": 4, "stalled": 26}
    hooked = spent(text.format(hook="106 wrapper abort rank=0"), 130)
    assert hooked == {"productive": 100, "unattributed": 4, "stalled": 2, "restart": 24}


def test_rule_21_a_stall_goes_on_after_the_death_until_the_launcher_saw_it():
    text = (
        STEADY
        + """
        104     exit signal=9 by=kernel
        110     launcher stop_workers
        115     launcher stop_workers ended
        120     attempt B launcher
        120-130 steps 11
    """
    )
    assert spent(text, 130) == {"productive": 110, "stalled": 10, "restart": 5, "down": 5}


def test_rule_22_an_announced_stop_is_restart_to_the_last_exit():
    text = (
        PAIR
        + """
        90      stop time_limit
        105     exit rank=0 code=0 by=itself
        110     exit rank=1 code=0 by=itself
    """
    )
    assert spent(text, 110) == {"productive": 100, "restart": 10}
    assert parts(text, 110, "restart") == {"teardown": 10}


def test_rule_22_saves_are_carved_out_of_it_be_they_finished_or_cut_short():
    text = STEADY + "100 stop preemption\n{save} phase checkpoint_save\n120 exit signal=9"
    finished = spent(text.format(save="102-110"), 120)
    assert finished == {"productive": 100, "restart": 12, "checkpoint_save": 8}
    cut = spent(text.format(save="102"), 120)
    assert cut == {"productive": 100, "restart": 2, "checkpoint_save": 18}


def test_rule_22_without_an_exit_a_notice_has_no_effect():
    text = STEADY + "95 stop preemption"
    assert spent(text, 120) == {"productive": 100, "unattributed": 20}


def test_rule_25_a_live_tail_is_the_phase_that_a_heartbeat_shows():
    text = STEADY + "103 phase evaluation\n110 heartbeat open=evaluation"
    assert spent(text, 120) == {"productive": 100, "unattributed": 3, "evaluation": 17}
    assert spent(text, 109) == {"productive": 100, "unattributed": 9}


def test_rule_25_an_open_step_is_productive_at_risk():
    text = STEADY + "110 heartbeat open=step"
    assert parts(text, 120, "productive") == {"at_risk": 120}


def test_rule_25_over_the_limit_a_live_tail_is_stalled_since_the_last_step():
    text = STEADY + "110 heartbeat open=step"
    assert spent(text, 200) == {"productive": 200}
    assert spent(text, 201) == {"productive": 100, "stalled": 101}


def test_rule_25_parts_of_a_start_tell_nothing_once_steps_are_done():
    text = STEADY + "110 heartbeat open=step,warmup"
    assert spent(text, 120) == {"productive": 120}
