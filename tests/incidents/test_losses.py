"""What each GPU cost a run: its faults, the incidents it is to blame for, steps and GPU time."""

import pytest

from headway.incidents import gpu_losses, incidents, loss_of
from headway.incidents.losses import united
from headway.ledger import ledger
from headway.report import report
from timeline import SECOND, at, timeline

GPUS = """
0  gpu 0 GPU-a 0000:1b:00.0
0  gpu 3 GPU-d 0000:cb:00.0
"""
RUN = """
400      allocation 4
400      attempt A launcher world=4 rank=0..3 local=0
400-500  steps 1-100 rank=0..3
450      scheduled c50 rank=0..3
450      finalized c50
500.5    fault exception rank=1 exception=RuntimeError
505      exit rank=0..3 signal=9 by=launcher
520      attempt B launcher world=4 rank=0..3 local=0
524-528  phase checkpoint_load rank=0..3
528      resumed 50 from=c50 rank=0..3
530-630  steps 51-150 rank=0..3
"""
XID = "500.2 xid 79 0000:cb:00\n"


def book(text, until=640):
    return ledger(timeline(text), at(until))


def losses(text, until=640):
    made = book(text, until)
    return gpu_losses(made, incidents(made))


def test_a_gpu_is_charged_with_the_steps_and_the_gpu_time_of_its_incidents():
    (one,) = losses(GPUS + RUN + XID)
    assert (one.node, one.device, one.faults, len(one.incidents)) == ("node-a", "GPU-d", 1, 1)
    # 50 steps of 1 s again, 29.5 s from the fault to the next step, on 4 GPUs
    assert (one.loss.steps, one.loss.time) == (50, 79.5 * SECOND)
    assert one.loss.gpu_time == 4 * 79.5 * SECOND


def test_the_report_and_its_incident_tell_the_charge():
    said = report(book(GPUS + RUN + XID))
    (one,), (incident,) = said["gpu_losses"], said["incidents"]
    assert one == {
        "node": "node-a",
        "device": "GPU-d",
        "faults": 1,
        "classes": {"reboot": 1},
        "names": ["Xid 79"],
        "incidents": [incident["incident"]],
        "steps": 50,
        "lost_ns": 79_500_000_000,
        "gpu_ns": 318_000_000_000,
    }
    assert (incident["suspect_gpu"], incident["lost_gpu_ns"]) == ("GPU-d", 318_000_000_000)


def test_what_is_lost_never_exceeds_what_the_ledger_counts_as_lost():
    made = book(GPUS + RUN + XID)
    lost = loss_of(made, incidents(made)[0]).time
    spent = made.categories
    assert (
        lost
        == sum(spent[name] for name in ("rolled_back", "stalled", "restart", "down"))
        + (spent["checkpoint_load"])
    )


def test_while_no_gpu_is_held_none_is_lost():
    queued = RUN.replace("520      attempt", "506 allocation 0\n516 allocation 4\n520      attempt")
    (one,) = losses(GPUS + queued + XID)
    assert one.loss.time == 79.5 * SECOND
    assert one.loss.gpu_time == 4 * 69.5 * SECOND


def test_an_incident_that_goes_on_costs_more_every_second():
    open_ = GPUS + RUN.split("520 ")[0] + XID
    assert losses(open_, 510)[0].loss.time == 9.5 * SECOND
    assert losses(open_, 610)[0].loss.time == 109.5 * SECOND


def test_faults_that_broke_nothing_cost_nothing_and_are_counted():
    (one,) = losses(GPUS + RUN + "600 xid 63 GPU-a\n610 xid 13 GPU-a\n620 xid 94 GPU-a class=reset")
    assert (one.device, one.faults, one.incidents) == ("GPU-a", 1, ())
    assert one.classes == {"application": 1, "reset": 1, "watch": 1}
    assert one.loss.gpu_time == 0


def test_consequences_and_gpus_of_others_are_not_the_runs():
    half = RUN.replace("world=4 rank=0..3", "world=2 rank=0..1").replace("0..3", "0..1")
    assert losses(GPUS + half + XID) == []
    assert losses(GPUS + RUN + "500.2 xid 45 0000:cb:00 repeats=900") == []


def test_a_fault_just_before_the_run_or_just_after_it_is_counted_with_its_incident():
    for time in (201, 540):
        (one,) = losses(GPUS + RUN.split("520 ")[0] + f"{time} xid 79 0000:cb:00", 600)
        assert (one.faults, len(one.incidents)) == (1, 1)


def test_a_run_that_never_began_an_attempt_has_lost_nothing():
    assert losses("0 allocation 4\n1 xid 79 GPU-a\n") == []


def test_the_worst_gpu_comes_first():
    found = losses(GPUS + RUN + XID + "600 xid 95 GPU-a")
    assert [one.device for one in found] == ["GPU-d", "GPU-a"]


@pytest.mark.parametrize(
    ("times", "begun"),
    [([], []), ([5], [5]), ([0, 200, 400, 701], [0, 701]), ([900, 0], [0, 900])],
)
def test_records_that_follow_each_other_within_five_minutes_are_one_fault(times, begun):
    assert united(time * SECOND for time in times) == [time * SECOND for time in begun]


def test_a_cause_that_a_person_corrected_is_charged_to_nobody():
    made = book(GPUS + RUN + XID)
    identity = incidents(made)[0].incident
    (one,) = losses(GPUS + RUN + XID + f"635 corrected {identity} network by=Ada")
    assert (one.faults, one.incidents, one.loss.steps) == (1, (), 0)
