"""Rules 26 to 28: goodput over wall time and GPU time, and the efficiency of checkpoints."""

import pytest

from headway.ledger.ratios import checkpoint_efficiency
from reckoning import book, in_seconds
from timeline import SECOND, at

RUN = """
    0       configured good=custom:warm
    0       attempt A launcher
    0-100   steps 1-10
    100-120 phase custom:{name}
    130     exit code=1 by=itself
"""


def shares(ratio):
    return round(ratio.low, 6), round(ratio.high, 6)


def test_rule_26_training_goodput_is_what_survives():
    text = """
        0       attempt A launcher
        10-110  steps 1-10
        110     exit code=1 by=itself
        110     attempt B launcher
        120-170 steps 6-10
    """
    found = book(text, 170)
    assert shares(found.training_goodput) == (round(100 / 170, 6), round(100 / 170, 6))
    assert shares(found.infrastructure_goodput) == (round(160 / 170, 6), round(160 / 170, 6))


def test_rule_26_unattributed_time_makes_a_range():
    text = "0 attempt A launcher\n0-90 steps 1-9"
    found = book(text, 100)
    assert shares(found.training_goodput) == (0.9, 1.0)
    assert shares(found.infrastructure_goodput) == (0.9, 1.0)
    assert found.training_goodput.numerator == (90 * SECOND, 100 * SECOND)


@pytest.mark.parametrize(
    ("category", "lost"),
    [("exit code=1 by=itself", 20), ("exit code=0 by=itself", 0)],
)
def test_rule_26_stalls_cost_both(category, lost):
    text = f"0 attempt A launcher\n0-100 steps 1-10\n120 {category}"
    found = book(text, 120)
    assert found.categories["stalled"] == lost * SECOND
    assert found.infrastructure_goodput.numerator[1] == (120 - lost) * SECOND


def test_rule_26_custom_time_is_good_training_where_the_run_declared_it():
    good = book(RUN.format(name="warm"), 130).training_goodput
    plain = book(RUN.format(name="other"), 130).training_goodput
    assert good.numerator[0] - plain.numerator[0] == 20 * SECOND


def test_rule_27_gpu_time_weighs_the_gpus_held_and_tells_the_spare_ones():
    text = """
        0       allocation 8
        0       attempt A launcher world=6
        0-100   steps 1-10
        100     exit code=1 by=itself
        150     allocation 4
        200     attempt B launcher world=4
        200-210 steps 11
    """
    spent = book(text, 210).gpu_time()
    seconds = in_seconds(spent)
    assert seconds == {
        "productive": 600 + 40,
        "down": 50 * 6 + 50 * 4,
        "spare": 100 * 2 + 50 * 2,
    }


def test_rule_27_without_allocation_events_the_world_size_weighs_and_is_flagged():
    text = "0 attempt A launcher world=6\n0-100 steps 1-10"
    found = book(text, 100)
    assert found.gpu_time()["productive"] == 600 * SECOND
    assert "no_allocation" in found.flags
    assert "no_allocation" not in book("0 allocation 6\n" + text, 100).flags


def test_rule_27_a_queue_weighs_nothing():
    text = """
        0       allocation 0
        100     allocation 4
        100     attempt A launcher world=4
        100-200 steps 1-10
    """
    assert sum(book(text, 200).gpu_time().values()) == 400 * SECOND


def test_rule_28_checkpoint_efficiency_leaves_faults_out():
    text = """
        0       attempt A launcher
        0-90    steps 1-9
        90-100  phase checkpoint_save
        150     exit code=1 by=itself
    """
    found = book(text, 150)
    assert found.categories["stalled"] == 50 * SECOND
    assert checkpoint_efficiency(found.categories) == 0.9


def test_rule_28_waits_evaluation_and_custom_time_are_part_of_it():
    totals = {
        "productive": 50,
        "rolled_back": 10,
        "checkpoint_save": 10,
        "data_wait": 10,
        "evaluation": 10,
        "custom:check": 10,
        "restart": 1000,
    }
    assert checkpoint_efficiency(totals) == 0.9
    assert checkpoint_efficiency({"restart": 10}) is None


def test_rule_27_requested_gpus_weigh_the_queue_and_an_elastic_run_by_what_it_asked_for():
    text = """
        0        allocation 8 requested=8
        0        attempt A scheduler world=8
        0-100    steps 1-100
        100      exit code=0 by=itself
        100      allocation 0 requested=8
        200      allocation 4 requested=8
        200      attempt B scheduler world=4
        210      resumed 100
        210-310  steps 101-200
    """
    found = book(text, 310)
    held = in_seconds(found.gpu_time())
    assert held == {"productive": 800 + 400, "restart": 40}
    asked = in_seconds(found.gpu_time("requested"))
    assert asked == {"productive": 800 + 400, "down": 800, "restart": 40, "spare": 4 * 110}


def test_rule_27_gpu_time_of_two_parts_is_that_of_the_whole():
    text = """
        0        allocation 4
        0        attempt A launcher world=4
        0-100    steps 1-100
        100      exit code=1 by=itself
        100      allocation 6
        110      attempt B launcher world=4
        120      resumed 50
        120-200  steps 51-130
    """
    found = book(text, 200)
    first = in_seconds(found.gpu_time(end=at(105)))
    second = in_seconds(found.gpu_time(start=at(105)))
    assert first == {
        "productive": 200,
        "rolled_back": 200,
        "down": 20,
        "spare": 10,
    }
    assert second["productive"] == 320
    whole = in_seconds(found.gpu_time())
    assert whole == {name: first.get(name, 0) + second.get(name, 0) for name in first | second}
    assert not any(found.gpu_time(start=at(300), end=at(400)).values())


def test_an_attempt_that_is_still_starting_is_no_failed_start():
    text = "0 attempt A launcher\n10 phase model\n"
    assert book(text, 20).failed_starts == 0
    assert book(text + "25 exit code=1 by=itself", 30).failed_starts == 1


def test_neighbouring_intervals_that_differ_in_nothing_are_one():
    text = """
        0       attempt A launcher rank=0..1
        0-4     phase import rank=0
        0-6     phase import rank=1
        10-20   steps 1-10 rank=0..1
    """
    found = [(i.start - at(0), i.end - at(0), i.part) for i in book(text, 20).intervals()]
    assert found[:2] == [(0, 6 * SECOND, "import"), (6 * SECOND, 10 * SECOND, "other")]
