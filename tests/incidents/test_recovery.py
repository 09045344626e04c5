"""How an incident ended: when it closed, which attempt and layer held, what it cost."""

from headway.incidents import incidents, recovery
from headway.incidents.recovery import distribution
from headway.ledger import ledger
from timeline import SECOND, at, timeline

START = """
0      attempt A in_process world=1
0-100  steps 1-100
50     scheduled c50
52     finalized c50
100.5  fault exception exception=ValueError
101    ended
"""


def read(text, until):
    return ledger(timeline(text), at(until))


def found(text, until):
    return incidents(read(text, until))


def phases(amounts):
    return {name: amount / SECOND for name, amount in amounts.items() if amount}


def test_an_incident_closes_ten_steps_beyond_the_old_highest():
    text = START + "105 attempt B launcher world=1\n110 resumed 50 from=c50\n110-300 steps 51-240"
    (incident,) = found(text, 300)
    # step 51 ends at 111, step 100 at 160, step 110 at 170
    assert incident.recovered == at(111)
    assert incident.caught_up == at(160)
    assert incident.closed == at(170)
    assert incident.outcome == "held_at_first"
    assert (incident.rollback_steps, incident.rollback) == (50, 50 * SECOND)


def test_an_incident_closes_when_a_checkpoint_scheduled_after_the_resume_is_durable():
    text = START + (
        "105 attempt B launcher world=1\n110 resumed 50 from=c50\n110-140 steps 51-80\n"
        "130 scheduled c70\n133 finalized c70"
    )
    (incident,) = found(text, 140)
    assert (incident.closed, incident.caught_up) == (at(133), None)


def test_recompute_is_measured_on_to_catch_up_after_closing():
    text = START + (
        "105 attempt B launcher world=1\n110 resumed 50 from=c50\n110-300 steps 51-240\n"
        "120 scheduled c60\n123 finalized c60"
    )
    (incident,) = found(text, 300)
    assert (incident.closed, incident.caught_up) == (at(123), at(160))
    assert phases(incident.phases)["recompute"] == 50


def test_a_checkpoint_in_memory_closes_nothing():
    text = START + (
        "105 attempt B launcher world=1\n110 resumed 50 from=c50\n110-140 steps 51-80\n"
        "130 scheduled c70 tier=memory\n133 finalized c70 tier=memory"
    )
    (incident,) = found(text, 140)
    assert (incident.closed, incident.outcome) == (None, "open")


def test_a_save_scheduled_before_the_fault_closes_nothing():
    text = START + (
        "99 scheduled c99\n105 attempt B launcher world=1\n110 resumed 50 from=c50\n"
        "110-140 steps 51-80\n120 finalized c99"
    )
    (incident,) = found(text, 140)
    assert incident.closed is None


def test_a_save_scheduled_before_the_first_step_of_the_attempt_closes_nothing():
    text = START + (
        "105 attempt B launcher world=1\n108 scheduled again 50\n110 resumed 50 from=c50\n"
        "110-140 steps 51-80\n120 finalized again 50"
    )
    (incident,) = found(text, 140)
    assert incident.closed is None


def test_recompute_ends_with_the_fault_of_the_next_incident():
    text = START + (
        "105 attempt B launcher world=1\n110 resumed 50 from=c50\n110-140 steps 51-80\n"
        "130 scheduled c70\n133 finalized c70\n150 exit signal=9\n"
        "160 attempt C launcher world=1\n165 resumed 70 from=c70\n165-300 steps 71-205"
    )
    first, second = found(text, 300)
    assert phases(first.phases)["recompute"] == 30
    # step 100 was reached again in the third attempt only, at 195
    assert first.caught_up == second.caught_up == at(195)
    assert (first.rollback_steps, second.rollback_steps) == (50, 30)


def test_without_rollback_caught_up_is_recovered():
    text = """
    0      attempt A scheduler
    0-100  steps 1-100
    100    scheduled c100
    101    finalized c100
    101    stop preemption
    102    exit code=0
    200    attempt B scheduler
    210    resumed 100 from=c100
    210-215 steps 101-105
    """
    (incident,) = found(text, 215)
    assert incident.rollback_steps == 0
    assert incident.caught_up == incident.recovered == at(211)


def test_a_fault_before_closing_joins_and_the_old_highest_stays():
    text = START + (
        "105 attempt B in_process world=1\n110 resumed 50 from=c50\n110-115 steps 51-55\n"
        "115.5 fault exception exception=ValueError\n116 ended\n"
        "120 attempt C in_process world=1\n125 resumed 50 from=c50\n125-300 steps 51-225"
    )
    (incident,) = found(text, 300)
    assert incident.opened == at(100.5)
    assert incident.rollback_steps == 50
    # the third attempt completes step 51 at 126, 100 at 175 and 110 at 185
    assert (incident.recovered, incident.caught_up) == (at(126), at(175))
    assert incident.closed == at(185)
    assert incident.outcome == "held_after_retries"
    assert [one.cause for one in incident.tries] == ["exception", None]


def test_a_fault_after_closing_is_another_incident():
    text = START + (
        "105 attempt B in_process world=1\n110 resumed 50 from=c50\n110-300 steps 51-240\n"
        "300.5 fault exception exception=ValueError\n301 ended\n302 attempt C in_process world=1"
    )
    first, second = found(text, 310)
    assert (first.closed, first.number) == (at(170), 1)
    assert (second.opened, second.number, second.outcome) == (at(300.5), 2, "open")


def test_a_checkpoint_that_becomes_durable_after_the_next_fault_closes_nothing():
    text = START + (
        "105 attempt B in_process world=1\n110 resumed 50 from=c50\n110-130 steps 51-70\n"
        "128 scheduled c70\n130.5 fault exception exception=ValueError\n131 finalized c70\n"
        "132 ended\n135 attempt C in_process world=1"
    )
    (incident,) = found(text, 140)
    assert len(incident.attempts) == 3


def test_an_outer_layer_that_takes_over_is_an_escalation():
    text = START + (
        "105 attempt B in_process world=1\n106 exit code=1\n"
        "110 attempt C launcher world=1\n111 resumed 50 from=c50\n111-300 steps 51-239"
    )
    book = read(text, 300)
    (incident,) = incidents(book)
    assert (incident.outcome, incident.layer) == ("escalated", "launcher")
    assert [one.outcome for one in incident.tries] == ["no_step", "progressed"]
    layers = recovery([incident])["by_layer"]
    assert layers["in_process"]["outcomes"]["escalated"] == 1
    assert layers["in_process"]["rate"] == 0
    assert layers["in_process"]["recovered_ns"]["count"] == 0
    assert layers["launcher"]["outcomes"]["held_at_first"] == 1
    assert layers["launcher"]["recovered_ns"]["max"] == incident.recovered - incident.opened


def test_a_run_that_ends_without_holding_was_not_recovered():
    text = START + "105 attempt B in_process world=1\n106 exit code=1\n107 run_ended failed"
    (incident,) = found(text, 110)
    assert (incident.outcome, incident.closed) == ("not_recovered", None)
    assert recovery([incident])["by_cause"]["exception"]["rate"] == 0


def test_a_run_that_completes_has_held():
    text = START + (
        "105 attempt B launcher world=1\n110 resumed 50 from=c50\n110-162 steps 51-102\n"
        "162 ended code=0\n162 run_ended completed"
    )
    (incident,) = found(text, 170)
    assert (incident.outcome, incident.closed) == ("held_at_first", at(162))


def test_a_run_that_somebody_stops_after_a_fault_was_not_recovered():
    (incident,) = found(START + "105 run_ended stopped", 110)
    assert (incident.cause, incident.outcome) == ("exception", "not_recovered")


def test_what_breaks_while_a_completed_run_takes_its_processes_down_is_no_incident():
    text = "0 attempt A launcher world=1\n0-100 steps 1-100\n100 run_ended completed\n"
    assert found(text + "101 fault exception exception=ValueError\n102 exit code=1", 110) == []


def test_phases_are_told_per_attempt_and_sum_to_those_of_the_incident():
    text = """
    0        attempt A launcher world=1
    0-100    steps 1-100
    100      exit signal=9
    160      launcher stop_workers
    170      launcher rendezvous
    180      attempt B launcher world=1
    190      exit code=1
    200      attempt C launcher world=1
    205-213  phase checkpoint_load
    213      resumed 0
    215-400  steps 1-185
    """
    book = read(text, 400)
    (incident,) = incidents(book)
    spent = phases(incident.phases)
    assert sum(spent.values()) == 215  # from 100 to 215, then 100 steps again
    assert spent["recompute"] == 100
    assert spent["load"] == 8
    for name, amount in incident.phases.items():
        assert amount == sum(one.phases[name] for one in incident.tries)


def test_phases_are_distributions_per_incident_and_per_attempt():
    text = """
    0        attempt A launcher world=1
    0-100    steps 1-100
    100      exit signal=9
    150      attempt B launcher world=1
    160      exit code=1
    165      attempt C launcher world=1
    175-195  phase checkpoint_load
    195      resumed 0
    195-400  steps 1-205
    """
    spent = recovery(found(text, 400))["phases"]
    # nobody restarts it from 100 to 150 and from 160 to 165
    assert spent["per_incident"]["wait"]["max"] == 55 * SECOND
    assert spent["per_attempt"]["wait"]["p50"] == 5 * SECOND
    assert spent["per_attempt"]["wait"]["max"] == 50 * SECOND
    assert spent["per_attempt"]["load"] == {
        "count": 2,
        "p50": 0,
        "p95": 20 * SECOND,
        "max": 20 * SECOND,
    }


def test_overlapping_restarts_are_united():
    """Two attempts wait for one outage: its 600 s count once."""
    text = """
    0        attempt A in_process world=1
    0-100    steps 1-100
    100.5    fault exception exception=ValueError
    160      attempt B in_process world=1
    160      attempt C in_process world=1
    430      exit code=1
    700      attempt D in_process world=1
    700-900  steps 1-200
    """
    (incident,) = found(text, 900)
    outage = {name: amount for name, amount in incident.phases.items() if name != "recompute"}
    assert sum(outage.values()) == at(700) - at(100.5)


def test_a_distribution_gives_values_that_occurred():
    assert distribution([]) == {"count": 0, "p50": None, "p95": None, "max": None}
    assert distribution([5]) == {"count": 1, "p50": 5, "p95": 5, "max": 5}
    assert distribution(list(range(100, 0, -1))) == {"count": 100, "p50": 50, "p95": 95, "max": 100}
