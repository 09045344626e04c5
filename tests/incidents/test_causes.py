"""One timeline for each cause, and for each thing that only looks like a cause."""

import pytest

from headway.events import CAUSES
from headway.incidents import incidents
from headway.ledger import ledger
from timeline import at, timeline

OPENING = """
0      allocation 4
0      attempt A launcher world=4 rank=0..3
0-100  steps 1-100 rank=0..3
"""
DEATH = "110 exit rank=0..3 signal=9 by=launcher"
START = """
0      allocation 4
0      attempt A launcher world=4 rank=0..3
"""


def broken(text, until=120, run="run"):
    (incident,) = incidents(ledger(timeline(text, run), at(until)))
    return incident


CASES = {
    "exception": "100.5 fault exception rank=2 exception=ValueError message=boom",
    "gpu_oom": "100.5 fault gpu_oom rank=2",
    "host_oom": "101 exit rank=2 signal=9 by=kernel",
    "collective_timeout": "105 fault collective_timeout rank=2 ran_for=4",
    "hang": "105 fault heartbeat_timeout rank=2 timeout=4",
    "killed": "101 exit rank=2 signal=9",
    "gpu_fault": "101 fault health_check rank=2",
    "node_lost": "101 fault lost_node rank=2",
    "network": "101 fault network rank=2",
    "storage": "101 fault storage rank=2",
    "preemption": "101 stop preemption rank=0..3",
    "time_limit": "101 stop time_limit rank=0..3",
    "operator": "101 stop maintenance rank=0..3",
    "numerical": "101 fault numerical rank=2",
}


@pytest.mark.parametrize("cause", CASES)
def test_each_kind_of_evidence_has_its_cause(cause):
    assert broken(OPENING + CASES[cause] + "\n" + DEATH).cause == cause


def test_an_attempt_that_dies_before_its_first_step_is_a_startup_failure():
    incident = broken(START + "5 exit rank=0..3 code=1")
    assert (incident.cause, incident.suspect_rank) == ("startup_failure", 0)
    assert incident.rule == "failed before its first step"


def test_without_evidence_the_cause_is_unknown():
    incident = broken(OPENING + "105 attempt B launcher world=4 rank=0..3")
    assert (incident.cause, incident.rule) == ("unknown", "no evidence")


def test_every_declared_cause_has_a_timeline():
    assert {*CASES, "startup_failure", "unknown"} == set(CAUSES)


def test_connection_errors_of_peers_are_no_cause():
    incident = broken(
        OPENING
        + """
        100.2 fault exception rank=0 exception=RuntimeError message="Connection reset by peer"
        100.3 fault exception rank=1 exception=ConnectionResetError
        101   exit rank=3 signal=11
        """
        + DEATH
    )
    assert (incident.cause, incident.suspect_rank) == ("killed", 3)


def test_connection_errors_alone_are_the_network():
    incident = broken(OPENING + "100.2 fault exception rank=0 exception=BrokenPipeError\n" + DEATH)
    assert (incident.cause, incident.rule) == ("network", "nothing but echoes of a dead peer")


def test_a_node_of_which_nothing_is_heard_while_the_others_tell_of_the_end_is_lost():
    incident = broken(
        """
        0      attempt A launcher world=8 rank=0..7
        0-100  steps 1-100 rank=0..7
        100.2  fault exception rank=0..3 exception=ConnectionResetError
        101    exit rank=0..3 code=1 by=launcher
        105    attempt B launcher world=8 rank=0..7
        """
    )
    assert (incident.cause, incident.suspect_node) == ("node_lost", "node-b")


def test_a_rank_that_leaves_because_of_a_dead_peer_is_not_the_cause():
    incident = broken(
        """
        0      attempt A launcher world=8 rank=0..7
        0-100  steps 1-100 rank=0..7
        100.2  fault exception rank=0..3 exception=ConnectionResetError
        101    exit rank=0..3 code=1
        105    attempt B launcher world=8 rank=0..7
        """
    )
    assert (incident.cause, incident.suspect_node) == ("node_lost", "node-b")
    assert incident.suspect_rank is None


LOSS = """
0      attempt A in_process world=8 rank=0..7
0      node_clock 0 node=node-a
0-100  steps 1-100 rank=0..7
110    fault lost_rank rank=0 suspect=4
110    ended rank=0..3
"""
NEXT = "111 attempt B in_process world=4 rank=0..3"


def test_a_node_whose_agent_tells_nothing_of_a_missing_rank_is_lost():
    incident = broken(LOSS + "0 node_clock 0 node=node-b\n" + NEXT)
    assert (incident.cause, incident.suspect_node) == ("node_lost", "node-b")
    assert incident.suspect_rank is None


def test_a_missing_rank_of_whose_end_its_agent_tells_was_killed():
    incident = broken(LOSS + "0 node_clock 0 node=node-b\n100.1 exit rank=4 signal=9\n" + NEXT)
    assert (incident.cause, incident.suspect_rank) == ("killed", 4)


def test_a_missing_rank_of_a_node_that_never_had_an_agent_was_killed():
    incident = broken(LOSS + NEXT)
    assert (incident.cause, incident.suspect_rank) == ("killed", 4)


def test_a_scheduler_that_stops_the_rest_of_a_job_whose_node_is_lost_preempts_nothing():
    incident = broken(
        """
        0      attempt A scheduler world=8 rank=0..7
        0      node_clock 0 node=node-b
        0-100  steps 1-100 rank=0..7
        101    stop sigterm rank=0..3
        103    exit rank=0..3 code=143
        105    attempt B scheduler world=8 rank=0..7
        """
    )
    assert (incident.cause, incident.suspect_node) == ("node_lost", "node-b")


def test_a_run_that_just_stops_lost_no_node():
    incident = broken(
        """
        0      attempt A launcher world=8 rank=0..7
        0-100  steps 1-100 rank=0..7
        105    attempt B launcher world=8 rank=0..7
        """
    )
    assert incident.cause == "unknown"


def test_sigterm_to_the_siblings_of_a_dead_rank_is_no_preemption():
    incident = broken(
        OPENING
        + """
        100.4 stop sigterm rank=0..2
        101   exit rank=3 signal=11
        105   exit rank=0..2 signal=15 by=launcher
        """
    )
    assert (incident.cause, incident.suspect_rank) == ("killed", 3)


def test_sigterm_that_a_person_sent_is_no_preemption():
    ends = "101 stop sigterm rank=0..3\n103 exit rank=0..3 code=143 by="
    assert broken(OPENING + ends + "person").cause == "operator"
    assert broken(OPENING + ends + "scheduler").cause == "preemption"
    assert broken(OPENING + ends + "unknown").cause == "preemption"


def test_sigterm_to_everyone_is_a_preemption_even_if_they_die_of_it():
    incident = broken(OPENING + "101 stop sigterm rank=0..3\n103 exit rank=0..3 signal=15")
    assert (incident.cause, incident.suspect_rank) == ("preemption", None)


def test_a_notice_that_says_why_beats_the_signal_that_came_with_it():
    incident = broken(
        OPENING + "101 stop sigterm rank=0..3\n102 stop time_limit\n105 exit rank=0..3 signal=15"
    )
    assert incident.cause == "time_limit"


def test_a_watchdog_that_fires_after_a_death_is_its_consequence():
    incident = broken(
        OPENING
        + """
        101 exit rank=3 signal=9
        160 fault collective_timeout rank=0 ran_for=59
        161 exit rank=0 signal=6
        """,
        until=170,
    )
    assert (incident.cause, incident.suspect_rank) == ("killed", 3)


def test_a_watchdog_that_is_recorded_late_still_fired_before_the_kill_that_it_led_to():
    incident = broken(
        OPENING
        + """
        115 exit rank=3 signal=9
        117 fault hang rank=0 suspect=3 timeout=10 ran_for=17
        """,
        until=170,
    )
    assert (incident.cause, incident.suspect_rank) == ("hang", 3)


def test_an_exit_after_a_watchdog_is_the_consequence():
    incident = broken(
        OPENING
        + """
        160 fault collective_timeout rank=0 ran_for=59
        161 exit rank=0..3 signal=6
        """,
        until=170,
    )
    assert incident.cause == "collective_timeout"


def test_ranks_killed_after_an_hour_without_a_step_were_hung():
    incident = broken(OPENING + "3700 exit rank=0..3 signal=9", until=3700)
    assert incident.cause == "hang"
    assert incident.opened == at(100)
    assert "no step for 1 h 0 min" in " ".join(item.words for item in incident.evidence)


def test_an_xid_is_evidence_and_decides_nothing_before_it_is_classified():
    incident = broken(
        OPENING
        + """
        99    xid 13 GPU-1 rank=2
        100.5 fault exception rank=2 exception=ValueError
        """
        + DEATH
    )
    assert incident.cause == "exception"
    assert "Xid 13 on GPU-1" in [item.words for item in incident.evidence]


def test_evidence_tells_time_rank_node_and_the_record_behind_it():
    incident = broken(OPENING + CASES["exception"] + "\n" + DEATH)
    item = incident.evidence[0]
    assert (item.words, item.rank, item.node) == ("ValueError on rank 2: boom", 2, "node-a")
    assert item.time == at(100.5)
    # rank 2 had recorded its attempt and 100 steps before
    assert item.sources == (("rank2", 101),)


def test_a_fault_in_a_step_that_nobody_completed_decides_before_peers_end_the_last_one() -> None:
    text = OPENING + (
        "99.999 fault exception rank=2 exception=ValueError message=boom step=101\n"
        '100.5 fault exception rank=1 exception=RuntimeError message="Connection closed by peer"\n'
        f"{DEATH}"
    )
    incident = broken(text)
    assert (incident.cause, incident.suspect_rank) == ("exception", 2)
    survived = broken(text.replace("step=101", "step=100"))
    assert survived.suspect_rank != 2
