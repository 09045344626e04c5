"""The culprit of a hang is found from open phases, never from the watchdog that fired first."""

from headway.incidents import incidents
from headway.ledger import ledger
from timeline import at, timeline

OPENING = """
0      allocation 4
0      attempt A launcher world=4 rank=0..3
0-100  steps 1-100 rank=0..3
"""
TIMEOUT = """
700.1  fault collective_timeout rank=0 ran_for=600 timeout=600
700.2  fault collective_timeout rank=1..3 ran_for=600 timeout=600
701    exit rank=0..3 signal=6
"""


def hung(text, until=701):
    (incident,) = incidents(ledger(timeline(OPENING + text), at(until)))
    return incident


def test_the_rank_that_saves_while_its_peers_wait_in_the_step_is_the_suspect():
    incident = hung(
        """
        100  phase step rank=0..1
        100  phase step rank=3
        100  phase checkpoint_save rank=2
        """
        + TIMEOUT
    )
    assert incident.cause == "collective_timeout"
    assert (incident.suspect_rank, incident.suspect_node) == (2, "node-a")
    assert incident.suspect_rule == "in checkpoint_save while 3 of its peers wait in step"


def test_of_two_ranks_outside_the_step_the_oldest_open_phase_counts():
    incident = hung(
        """
        100    phase step rank=0..1
        100.2  phase data_wait rank=2
        100.1  phase data_wait rank=3
        """
        + TIMEOUT
    )
    assert incident.suspect_rank == 3


def test_one_rank_in_the_step_waits_for_the_many_that_have_no_data():
    incident = hung(
        """
        100    phase step rank=0
        100.2  phase data_wait rank=1..2
        100.1  phase data_wait rank=3
        """
        + TIMEOUT
    )
    assert incident.suspect_rank == 3
    assert incident.suspect_rule == "in data_wait while 1 of its peers waits in step"


def test_a_rank_between_phases_holds_up_those_in_the_step():
    incident = hung("100 phase step rank=0..2\n" + TIMEOUT)
    assert incident.suspect_rank == 3
    assert incident.suspect_rule.startswith("between phases")


def test_a_heartbeat_tells_the_phase_where_no_begin_was_recorded():
    incident = hung(
        """
        100  phase step rank=0..2
        150  heartbeat rank=3 open=evaluation
        """
        + TIMEOUT
    )
    assert incident.suspect_rule.startswith("in evaluation")


def test_if_all_wait_in_the_step_nobody_is_accused():
    incident = hung("100 phase step rank=0..3\n" + TIMEOUT)
    assert incident.suspect_rank is None


def test_of_ranks_in_one_save_the_one_that_copied_no_state_is_the_suspect():
    incident = hung(
        """
        100    phase checkpoint_save rank=0..3
        100.2  staged c100 rank=0..1
        100.3  staged c100 rank=3
        """
        + TIMEOUT
    )
    assert incident.suspect_rank == 2
    assert incident.suspect_rule == (
        "no sign since it began checkpoint_save, in which 3 of its peers went on"
    )


def test_of_ranks_in_one_evaluation_the_one_that_ended_nothing_in_it_is_the_suspect():
    incident = hung(
        """
        100          phase evaluation rank=0..3
        100.1-100.2  phase data_wait rank=0..2
        """
        + TIMEOUT
    )
    assert incident.suspect_rank == 3


def test_of_ranks_in_one_save_the_only_one_that_waited_in_no_collective_is_the_suspect():
    incident = hung(
        """
        100-700.1  phase checkpoint_save rank=0..2 error=RuntimeError
        100        phase checkpoint_save rank=3
        700.1      fault collective_timeout rank=0..2 ran_for=600 timeout=600
        701        exit rank=0..2 code=1
        701        exit rank=3 signal=15 by=launcher
        """
    )
    assert incident.suspect_rank == 3
    assert incident.suspect_rule == "the only rank whose collective operation did not time out"


def test_a_sign_before_the_phase_that_all_are_in_tells_nobody_apart():
    incident = hung("100 staged c100 rank=0\n100.1 phase evaluation rank=0..3\n" + TIMEOUT)
    assert incident.suspect_rank is None


def test_a_rank_that_the_record_names_is_the_suspect():
    incident = hung(
        "100 phase step rank=0..3\n700 fault heartbeat_timeout rank=0 suspect=2\n" + TIMEOUT
    )
    assert (incident.suspect_rank, incident.suspect_rule) == (2, "the record names it")


def test_a_timeout_in_a_phase_that_may_take_long_is_suspected_to_be_a_false_alarm():
    for phase in ("warmup", "checkpoint_save", "checkpoint_load", "data_wait", "custom:compile"):
        incident = hung(
            f"""
            100  phase {phase} rank=0..3
            400  fault heartbeat_timeout rank=0..3 timeout=300
            401  exit rank=0..3 signal=9 by=launcher
            """,
            until=401,
        )
        assert incident.suspected_false_alarm, phase


def test_a_timeout_inside_a_step_is_no_false_alarm():
    incident = hung("100 phase step rank=0..3\n400 fault heartbeat_timeout rank=0..3 timeout=300")
    assert not incident.suspected_false_alarm


def test_a_timeout_beside_another_fault_is_no_false_alarm():
    incident = hung(
        """
        100  phase checkpoint_save rank=0..3
        300  fault storage rank=1
        400  fault heartbeat_timeout rank=0..3 timeout=300
        """
    )
    assert not incident.suspected_false_alarm


def test_a_timeout_before_another_fault_is_no_false_alarm_either():
    incident = hung(
        """
        100  phase checkpoint_save rank=0..3
        400  fault heartbeat_timeout rank=0..3 timeout=300
        401  fault exception rank=1 exception=ValueError
        """
    )
    assert incident.cause == "hang"
    assert not incident.suspected_false_alarm


def test_a_run_without_steps_opens_an_incident_while_its_agent_goes_on_talking():
    incident = hung("400 heartbeat rank=0..3 open=step", until=400)
    assert (incident.cause, incident.outcome) == ("hang", "open")
    assert incident.opened == at(100)


def test_a_rank_without_a_sign_while_its_peers_step_is_named():
    incident = hung("100-300 steps 101-300 rank=0\n100-300 steps 101-300 rank=2..3", until=301)
    assert (incident.cause, incident.suspect_rank) == ("hang", 1)
    assert incident.opened == at(100)
    assert incident.outcome == "open"


def test_a_node_of_which_nothing_is_heard_has_a_silent_agent_and_no_silent_ranks():
    text = """
    0      attempt A launcher world=8 rank=0..7
    0-100  steps 1-100 rank=0..7
    100-300 steps 101-300 rank=0..3
    """
    assert incidents(ledger(timeline(text), at(300))) == []
    (incident,) = incidents(ledger(timeline(text + "290 heartbeat rank=6 open=step"), at(300)))
    assert incident.suspect_node == "node-b"


def test_a_rank_that_reports_hundreds_of_steps_at_once_is_not_silent_between_two_reports():
    text = """
    0        attempt A launcher world=2 rank=0..1
    0-500    steps 1-500
    0-200    summary 1-200 rank=1
    200-400  summary 201-400 rank=1
    """
    assert incidents(ledger(timeline(text), at(500))) == []
