"""Attempts that lead nowhere are counted, and what repeats in them is named."""

from headway.incidents import attempts_without_durable_step, incidents, loops
from headway.ledger import ledger
from loops import CHAIN
from timeline import at, timeline


def read(text, until):
    return ledger(timeline(text), at(until))


def test_attempts_count_until_a_durable_checkpoint_moves_the_run_forward():
    assert attempts_without_durable_step(read(CHAIN, 45)) == 1
    assert attempts_without_durable_step(read(CHAIN, 60)) == 0
    assert attempts_without_durable_step(read(CHAIN, 96)) == 3


def test_a_checkpoint_that_holds_no_more_than_before_is_no_progress():
    again = CHAIN + "100 attempt E launcher world=1\n101 scheduled c50\n102 finalized c50"
    assert attempts_without_durable_step(read(again, 110)) == 4


def test_only_durable_checkpoints_count():
    unfinished = CHAIN + "97 scheduled c53\n98 save_failed c53"
    assert attempts_without_durable_step(read(unfinished, 110)) == 3


def test_a_loop_is_three_attempts_without_a_new_durable_step():
    (loop,) = loops(read(CHAIN, 96))
    assert (loop.attempts, loop.first_attempt, loop.last_attempt) == (3, 2, 4)
    assert (loop.start, loop.end) == (at(70), None)
    assert loops(read(CHAIN, 86)) == []


def test_a_loop_ends_with_the_durable_step_that_breaks_it():
    broken = CHAIN + (
        "100 attempt E launcher world=1\n102 resumed 50 from=c50\n102-160 steps 51-108\n"
        "160 scheduled c108\n162 finalized c108"
    )
    (loop,) = loops(read(broken, 170))
    assert (loop.attempts, loop.end) == (4, at(162))
    assert attempts_without_durable_step(read(broken, 170)) == 0


def test_what_repeats_from_one_failure_to_the_next_is_persistent():
    (incident,) = incidents(read(CHAIN, 96))
    assert incident.outcome == "open"
    # B, C and D started from c50 and died with the same words but for the number
    assert incident.persistent == {"rank": 4, "node": 4, "checkpoint": 3, "signature": 3}


def test_what_changes_is_not_persistent():
    text = """
    0     attempt A launcher world=8 rank=0..7
    0-50  steps 1-50 rank=0..7
    50.5  fault exception rank=1 exception=ValueError
    52    attempt B launcher world=8 rank=0..7
    52.5  fault storage rank=6
    """
    (incident,) = incidents(read(text, 60))
    assert incident.persistent == {}


def test_a_checkpoint_that_cannot_be_loaded_again_and_again_is_persistent():
    text = """
    0     attempt A launcher world=1
    0-50  steps 1-50
    50    scheduled c50
    51    finalized c50
    52    exit signal=9
    60    attempt B launcher world=1
    61    load_failed c50
    62    exit code=1
    70    attempt C launcher world=1
    71    load_failed c50
    72    exit code=1
    """
    (incident,) = incidents(read(text, 80))
    assert incident.persistent["checkpoint"] == 2
