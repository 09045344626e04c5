"""Steps that other tools counted twice, lost or timed wrong after a resume."""

from headway.ledger import Timeline
from reckoning import book, in_seconds, told
from timeline import SECOND, at, timeline

AGAIN = """
0        attempt A launcher world=1
0-212    steps 1-212
200      scheduled c200
201      finalized c200
213      exit signal=9
220      attempt B launcher world=1
221      resumed 200 from=c200
221-321  steps 201-300
"""


# A9: EleutherAI/gpt-neox#308
def test_a_loader_that_was_not_advanced_replays_data_and_that_is_told():
    found = told(
        """
        0      attempt A launcher world=1
        0-100  steps 1-100 samples=8
        100    scheduled c100
        101    finalized c100
        102    exit signal=15 by=scheduler
        110    attempt B launcher world=1
        112    resumed 100 from=c100
        112-150 steps 101-138 samples=2 seen=200
        """,
        150,
    )
    valid = found["incidents"][0]["recovery_valid"]
    assert valid["valid"] == "no"
    assert (
        "replayed data: 402 samples consumed after step 101, but 800 after step 100"
        in (valid["reason"])
    )


# A11: Red-Hat-AI-Innovation-Team/mini_trainer#79
def test_the_checkpointed_step_done_again_is_one_step_of_rework():
    found = told(
        """
        0      attempt A launcher world=1
        0-10   steps 1-10
        10     scheduled c10
        11     finalized c10
        12     exit signal=9
        20     attempt B launcher world=1
        21     resumed 10 from=c10
        21-41  steps 10-29
        """,
        41,
    )
    assert found["steps"]["rework"] == 1
    assert found["rollbacks"][0]["steps"] == 1


# A13: intel/ipex-llm#271
def test_an_iteration_seen_before_and_after_a_resume_is_one_step_of_progress():
    found = told(
        """
        0        attempt A launcher world=1
        0        resumed 17147
        0-2      steps 17148-17149
        3        exit signal=9
        10       attempt B launcher world=1
        11       resumed 17148
        11-12    steps 17149
        """,
        12,
    )
    assert found["steps"]["highest"] == 17149
    assert (found["steps"]["executed"], found["steps"]["surviving"]) == (3, 2)


# A14: allenai/tango#152
def test_both_passes_of_repeated_steps_are_kept_and_the_later_survives():
    found = book(AGAIN, 321)
    assert (found.steps.executed, found.steps.rework, found.steps.surviving) == (312, 12, 300)
    assert found.categories["rolled_back"] == 12 * SECOND
    assert found.problems == []


# A15: wandb/wandb#4482
def test_no_counter_falls_when_steps_repeat_after_a_resume():
    events = timeline(AGAIN)
    kept = Timeline("run")
    kept.add(events)
    highest = executed = 0
    for until in range(1, 322, 10):
        counts = kept.ledger(at(until)).steps
        assert counts.highest >= highest
        assert counts.executed >= executed
        highest, executed = counts.highest, counts.executed
        assert counts.surviving <= counts.highest
    assert (highest, executed) == (300, 312)


# A16: huggingface/transformers#41407
def test_the_rate_after_a_resume_is_that_of_its_own_attempt():
    found = book(AGAIN, 321)
    before, after = (account.steps for account in found.book.accounts)
    assert before is not None
    assert after is not None
    assert after.pace.step is not None
    assert before.pace.step is not None
    assert 0.5 < after.pace.step / before.pace.step < 2


# A17: apple/axlearn#783
def test_restore_and_compilation_are_in_one_category_each_and_all_sum_to_the_whole():
    found = book(
        """
        0       attempt A launcher world=1
        0-60    phase startup
        5-15    phase import
        10-40   phase checkpoint_load
        20-30   phase custom:decrypt
        40-60   phase warmup
        60-100  steps 1-40
        """,
        100,
    )
    assert sum(found.categories.values()) == found.elapsed
    assert in_seconds(found.categories) == {
        "productive": 40,
        "checkpoint_load": 20,
        "custom:decrypt": 10,
        "startup": 30,
    }
