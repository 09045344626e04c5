"""Rule 15: one ledger for a group of ranks, each step told by its critical one."""

from reckoning import book, spent


def test_rule_15_a_group_step_lasts_until_the_last_rank_ended_it():
    text = """
        0      attempt A launcher rank=0..1
        0-10   steps 1 rank=0
        0-14   steps 1 rank=1
        14-24  steps 2 rank=0
        14-20  steps 2 rank=1
        24     exit code=1 rank=0..1 by=itself
        24     attempt B launcher
        24-30  steps 2
    """
    # step 2 ran from 14 to 24, and all of it is discarded
    assert spent(text, 30) == {"productive": 20, "rolled_back": 10}


def test_rule_15_the_rank_that_waited_most_is_critical():
    text = """
        0      attempt A launcher rank=0..2
        0-10   steps 1 rank=0..2
        10-20  steps 2 each=9 wait=1 rank=0
        10-20  steps 2 each=6 wait=4 rank=1
        10-20  steps 2 each=8 wait=2 rank=2
    """
    assert spent(text, 20) == {"productive": 16, "data_wait": 4}


def test_rule_15_of_equals_the_lowest_rank_is_critical():
    text = """
        0      attempt A launcher rank=0..1
        0-10   steps 1 rank=0..1
        10-13  phase evaluation rank=0
        10-13  phase checkpoint_save rank=1
        13-20  steps 2 rank=0..1
    """
    assert spent(text, 20) == {"productive": 17, "evaluation": 3}


def test_rule_15_only_the_critical_rank_tells_phases():
    text = """
        0      attempt A launcher rank=0..1
        0-10   steps 1 rank=0..1
        10-11  phase evaluation rank=0
        11-20  steps 2 rank=0
        10-12  phase checkpoint_save rank=1
        12-20  steps 2 rank=1
    """
    assert spent(text, 20) == {"productive": 18, "checkpoint_save": 2}


def test_rule_15_a_rank_done_early_waits_for_the_others_within_the_step():
    text = """
        0      attempt A launcher rank=0..1
        0-4    steps 1 rank=0
        0-10   steps 1 rank=1
        10-20  steps 2 rank=0..1
    """
    assert spent(text, 20) == {"productive": 20}


def test_rule_15_a_rank_done_early_may_wait_for_the_data_of_its_next_step():
    text = """
        0      attempt A launcher rank=0..1
        0-10   steps 1 rank=0..1
        10-14  steps 2 rank=1
        10-20  steps 2 rank=0
        16-30  steps 3 each=8 wait=6 rank=1
        20-30  steps 3 rank=0
    """
    # rank 1 waits 16-22: 4 s within the group's second step, 2 s within its third
    assert spent(text, 30) == {"productive": 24, "data_wait": 6}


def test_rule_15_a_silent_rank_does_not_hold_a_step_open():
    text = """
        0      attempt A launcher rank=0..1
        0-10   steps 1 rank=0..1
        10-20  steps 2 rank=0
        200    heartbeat rank=1
    """
    assert spent(text, 30)["productive"] == 20


def test_rule_15_the_steps_of_a_summary_are_judged_together():
    text = """
        0      attempt A launcher rank=0..1
        0-10   steps 1 rank=0..1
        10-30  summary 2-3 wait=4 rank=0
        10-20  steps 2 each=7 wait=3 rank=1
        20-30  steps 3 rank=1
    """
    # rank 0 waited 4 s in both steps together, rank 1 only 3 s, be it in one of them
    assert spent(text, 30) == {"productive": 26, "data_wait": 4}


def test_rule_15_the_first_step_begins_where_any_rank_first_waited():
    text = """
        0      attempt A launcher rank=0..1
        0-20   phase model rank=0..1
        20-30  phase evaluation rank=1
        26-40  steps 1 each=10 wait=4 rank=0
        30-40  steps 1 rank=1
    """
    # up to 26 every rank is heard, from then on only the critical rank 0
    assert spent(text, 40) == {"startup": 20, "evaluation": 6, "data_wait": 4, "productive": 10}


def test_rule_15_a_lone_rank_is_flagged():
    lone = "0 attempt A launcher\n0-10 steps 1"
    pair = "0 attempt A launcher rank=0..1\n0-10 steps 1 rank=0..1"
    assert "single_rank" in book(lone, 10).flags
    assert "single_rank" not in book(pair, 10).flags
