"""One timeline for each row of docs/signals.md: what a piece of evidence does to the ledger."""

import re
from pathlib import Path

import pytest

from headway.ledger import Timeline, ledger
from reckoning import book, in_seconds, spent
from timeline import SECOND, at, timeline

TABLE = Path(__file__).parents[2] / "docs" / "signals.md"


def killed_rank():
    found = spent(
        """
        0       attempt A launcher world=2 rank=0..1
        0-100   steps 1-100 rank=0..1
        107     exit rank=1 signal=9
        110     launcher stop_workers
        112     exit rank=0 signal=15 by=launcher
        """,
        112,
    )
    assert found == {"productive": 100, "stalled": 10, "restart": 2}


def kernel_oom_kill():
    found = spent(
        """
        0       attempt A launcher
        0-100   steps 1-100
        105     exit signal=9 by=kernel
        """,
        105,
    )
    assert found == {"productive": 100, "stalled": 5}


def exception_in_a_step():
    found = spent(
        """
        0        attempt A in_process
        0-100    steps 1-100
        100-100.6  phase step error=RuntimeError
        100.6    fault exception
        100.8    wrapper abort
        101      ended
        101.5    attempt B in_process
        102      resumed 100
        102-112  steps 101-110
        """,
        112,
        parts=["rolled_back/partial", "restart/teardown"],
    )
    assert found == {
        "productive": 110,
        "rolled_back": 0.6,
        "rolled_back/partial": 0.6,
        "stalled": 0.2,
        "restart": 1.2,
        "restart/teardown": 0.2,
    }


def watchdog_line():
    found = spent(
        """
        0       attempt A launcher
        0-100   steps 1-100
        700     fault collective_timeout ran_for=590
        701     exit signal=6
        """,
        701,
    )
    # the watchdog had waited since 110; the ten seconds before are a gap without evidence
    assert found == {"productive": 100, "unattributed": 10, "stalled": 591}


def watchdog_line_that_waited_longer_than_since_the_last_step():
    found = spent(
        """
        0       attempt A launcher
        0-100   steps 1-100
        700     fault collective_timeout ran_for=620 timeout=600
        701     exit signal=6
        """,
        701,
    )
    assert found == {"productive": 100, "stalled": 601}


def heartbeat_timeout():
    found = spent(
        """
        0       attempt A launcher
        0-100   steps 1-100
        115     fault heartbeat_timeout ran_for=15
        115     launcher stop_workers
        117     exit signal=9 by=launcher
        """,
        117,
    )
    assert found == {"productive": 100, "stalled": 15, "restart": 2}


def section_timeout():
    found = spent(
        """
        0        attempt A launcher
        0-100    steps 1-100
        100      phase evaluation
        180      fault section_timeout ran_for=60 phase=evaluation
        181      launcher stop_workers
        183      exit signal=9 by=launcher
        """,
        183,
    )
    # the section went on as an evaluation until the watchdog began to count
    assert found == {"productive": 100, "evaluation": 20, "stalled": 61, "restart": 2}


def exit_by_the_launchers_signal():
    found = spent(
        """
        0       attempt A launcher
        0-100   steps 1-100
        103     exit signal=15 by=launcher
        103     attempt B launcher
        105     resumed 100
        105-115 steps 101-110
        """,
        115,
    )
    # no fault: three seconds in which nothing is known, then a new attempt
    assert found == {"productive": 110, "unattributed": 3, "restart": 2}


def container_exit():
    found = spent(
        """
        0       attempt A scheduler
        0-100   steps 1-100
        104     exit code=1 by=itself
        200     attempt B scheduler
        210     resumed 100
        210-220 steps 101-110
        """,
        220,
    )
    assert found == {"productive": 110, "stalled": 4, "down": 96, "restart": 10}


def launcher_sees_the_end_late():
    found = spent(
        """
        0       attempt A launcher
        0-100   steps 1-100
        100     exit signal=9
        101     launcher stop_workers
        110     attempt B launcher
        112     resumed 100
        112-122 steps 101-110
        """,
        122,
    )
    assert found == {"productive": 110, "stalled": 1, "restart": 11}


def announced_stop():
    found = spent(
        """
        0        allocation 8
        0        attempt A scheduler world=8
        0-100    steps 1-100
        100.4    stop preemption
        101-104  phase checkpoint_save
        106      exit code=0 by=itself
        106      allocation 0
        """,
        200,
        parts=["restart/teardown", "down/queued"],
    )
    assert found == {
        "productive": 100,
        "unattributed": 0.4,
        "checkpoint_save": 3,
        "restart": 2.6,
        "restart/teardown": 2.6,
        "down": 94,
        "down/queued": 94,
    }


def announced_stop_without_an_exit():
    found = spent(
        """
        0       attempt A scheduler
        0-100   steps 1-100
        50      stop sigterm
        100-110 steps 101-110
        """,
        110,
    )
    assert found == {"productive": 110}


def node_loss():
    found = spent(
        """
        0        attempt A launcher world=2 rank=0..1
        0-100    steps 1-100 rank=0..1
        103      heartbeat rank=0 open=step
        300      attempt B launcher world=2 rank=0..1
        310      resumed 100 rank=0..1
        310-320  steps 101-110 rank=0..1
        """,
        320,
        parts=["rolled_back/partial"],
    )
    # nobody saw the end: the attempt ends with its last sign of life, in a step cut short
    assert found == {
        "productive": 110,
        "rolled_back": 3,
        "rolled_back/partial": 3,
        "down": 197,
        "restart": 10,
    }


def dead_peer_with_survivors_blocked():
    found = spent(
        """
        0        attempt A launcher world=4 rank=0..3
        0-100    steps 1-100 rank=0..3
        100      exit rank=3 signal=9
        160      heartbeat rank=0 open=step
        700      launcher stop_workers
        704      exit rank=0..2 signal=9 by=launcher
        """,
        704,
    )
    assert found == {"productive": 100, "stalled": 600, "restart": 4}


def silent_rank_while_others_step():
    found = spent(
        """
        0        attempt A launcher world=2 rank=0..1
        0-100    steps 1-100 rank=0..1
        100-200  steps 101-200 rank=0
        """,
        200,
    )
    assert found == {"productive": 200}


def standby_node():
    found = book(
        """
        0        allocation 12
        0        attempt A launcher world=8
        0-100    steps 1-100
        """,
        100,
    )
    assert in_seconds(found.categories) == {"productive": 100}
    assert in_seconds(found.gpu_time()) == {"productive": 800, "spare": 400}


def launcher_that_logs_while_nothing_moves():
    text = """
        0        attempt A launcher
        0-100    steps 1-100
        """ + "".join(f"{time} heartbeat open=step\n" for time in range(110, 1000, 30))
    assert spent(text, 150) == {"productive": 150}
    assert spent(text, 1000) == {"productive": 100, "stalled": 900}


def self_healed_stall():
    found = spent(
        """
        0        attempt A launcher
        0-100    steps 1-100
        100-400  steps 101
        200      fault collective_timeout ran_for=90
        400-410  steps 102-111
        """,
        410,
    )
    # the usual second of the long step stays productive, the fault itself stalls nothing
    assert found == {"productive": 111, "stalled": 299}


def back_off():
    found = spent(
        """
        0       allocation 4
        0       attempt A launcher
        0-100   steps 1-100
        100     exit code=1 by=itself
        100     launcher stop_workers
        102     launcher backoff
        130     launcher spawn
        140     attempt B launcher
        145     resumed 100
        145-155 steps 101-110
        """,
        155,
        parts=["down/held", "restart/teardown"],
    )
    assert found == {
        "productive": 110,
        "restart": 17,
        "restart/teardown": 2,
        "down": 28,
        "down/held": 28,
    }


def waiting_for_nodes():
    found = spent(
        """
        0       allocation 4
        0       attempt A launcher
        0-100   steps 1-100
        100     exit code=1 by=itself
        100     launcher stop_workers
        101     launcher wait_nodes
        101     allocation 0
        160     allocation 4
        170     launcher rendezvous
        175     attempt B launcher
        180     resumed 100
        180-190 steps 101-110
        """,
        190,
        parts=["down/queued", "down/held", "restart/rendezvous"],
    )
    assert found == {
        "productive": 110,
        "restart": 11,
        "restart/rendezvous": 5,
        "down": 69,
        "down/queued": 59,
        "down/held": 10,
    }


def rendezvous_alone():
    found = spent(
        """
        0       attempt A launcher world=2 rank=0..1
        0-100   steps 1-100 rank=0..1
        100     exit rank=0..1 code=1 by=itself
        100     launcher rendezvous
        160     attempt B launcher world=2 rank=0
        190     exit rank=0 code=1 by=itself
        190     launcher rendezvous
        200     attempt C launcher world=2 rank=0..1
        205     resumed 100 rank=0..1
        205-215 steps 101-110 rank=0..1
        """,
        215,
        parts=["restart/failed_start"],
    )
    assert found == {"productive": 110, "restart": 105, "restart/failed_start": 30}


def staggered_pod_restarts():
    found = spent(
        """
        0       attempt A scheduler world=2 rank=0..1
        0-100   steps 1-100 rank=0..1
        100     exit rank=1 code=1 by=itself
        130     exit rank=0 code=1 by=itself
        120     attempt B scheduler world=2 rank=1
        150     attempt B scheduler world=2 rank=0
        160     resumed 100 rank=0..1
        160-170 steps 101-110 rank=0..1
        """,
        170,
    )
    # the new attempt begins with its first process and owns the time from there on
    assert found == {"productive": 110, "stalled": 20, "restart": 40}


def late_spool():
    events = timeline(
        """
        0       attempt A launcher world=2 rank=0..1
        0-100   steps 1-100 rank=0
        0-100   steps 1-100 rank=1
        100-103 phase evaluation rank=1
        100-104 steps 101 rank=0
        103-104 steps 101 rank=1
        104-113 steps 102-110 rank=0..1
        """
    )
    late = [event for event in events if event.rank == 1]
    taken = Timeline("run")
    taken.add(event for event in events if event.rank != 1)
    before = taken.ledger(at(113)).categories
    assert before["evaluation"] == 0
    taken.add(late)
    assert taken.ledger(at(113)).categories == ledger(events, at(113)).categories
    assert taken.ledger(at(113)).categories["evaluation"] == 3 * SECOND


def failed_start():
    found = spent(
        """
        0       attempt A launcher
        0-100   steps 1-100
        100     exit code=1 by=itself
        110     attempt B launcher
        115-125 phase checkpoint_load
        130     exit code=1 by=itself
        140     attempt C launcher
        150     resumed 100
        150-160 steps 101-110
        """,
        160,
        parts=["restart/failed_start"],
    )
    assert found == {"productive": 110, "down": 20, "restart": 30, "restart/failed_start": 20}


def failed_load():
    found = spent(
        """
        0       attempt A launcher
        0-100   steps 1-100
        50      scheduled c50
        50      finalized c50
        100     scheduled c100
        100     finalized c100
        100     exit code=1 by=itself
        100     attempt B launcher
        110-120 phase checkpoint_load error=torn
        120     load_failed c100
        120-125 phase checkpoint_load
        125     resumed 50 from=c50
        125-135 steps 51-60
        """,
        135,
        parts=["restart/load_failed"],
    )
    assert found == {
        "productive": 60,
        "rolled_back": 50,
        "restart": 20,
        "restart/load_failed": 10,
        "checkpoint_load": 5,
    }


def blocking_save_without_a_phase():
    found = spent(
        """
        0       attempt A launcher
        0-100   steps 1-100
        104     scheduled c100 blocking=4
        104-114 steps 101-110
        109     finalized c100
        """,
        114,
    )
    # only the blocking part is the save; the background write costs nothing
    assert found == {"productive": 110, "checkpoint_save": 4}


def watchdog_in_a_start():
    found = spent(
        """
        0        attempt A launcher
        0-100    steps 1-100
        100      exit code=1 by=itself
        100      attempt B launcher
        110      phase checkpoint_load
        720      fault heartbeat_timeout ran_for=600
        725      exit signal=9 by=launcher
        """,
        725,
    )
    assert found == {"productive": 100, "restart": 20, "stalled": 605}


def wrapper_at_work():
    text = """
        0        allocation 2
        0        attempt A launcher world=2 rank=0..1
        0-10     steps 1-10 rank=0..1
        10       fault exception rank=1
        10       wrapper abort
        11       ended rank=0..1
        11       wrapper abort ended
        """
    # the processes live on, so nothing is down before the next attempt shows itself
    assert spent(text, 30) == {"productive": 10, "restart": 20}
    assert spent(text + "12 exit rank=0..1 signal=9", 30)["down"] == 18


def gap_without_evidence():
    found = spent(
        """
        0       attempt A launcher
        0-100   steps 1-100
        130-140 steps 101-110
        """,
        140,
    )
    # a second of the gap belongs to the step after it, as far as its usual period
    assert found == {"productive": 111, "unattributed": 29}


def live_and_silent():
    text = """
        0       attempt A launcher
        0-100   steps 1-100
        """
    assert spent(text, 130) == {"productive": 100, "unattributed": 30}
    assert spent(text, 161) == {"productive": 100, "stalled": 61}


def abandoned_run():
    text = """
        0       attempt A launcher
        0-100   steps 1-100
        50      scheduled c50
        50      finalized c50
        """
    day = 24 * 3600
    assert book(text, 100 + day - 1).state == "running"
    found = book(text, 100 + day)
    assert (found.state, found.elapsed) == ("abandoned", 100 * SECOND)
    assert in_seconds(found.categories) == {"productive": 50, "rolled_back": 50}


def clean_end():
    found = spent(
        """
        0         attempt A launcher
        0-100     steps 1-100
        100-102   phase evaluation
        107       ended
        107       run_ended completed
        """,
        500,
    )
    # one second after the evaluation still belongs to the last step
    assert found == {"productive": 101, "evaluation": 2, "unattributed": 4}


ROWS = [
    killed_rank,
    kernel_oom_kill,
    exception_in_a_step,
    watchdog_line,
    watchdog_line_that_waited_longer_than_since_the_last_step,
    heartbeat_timeout,
    section_timeout,
    exit_by_the_launchers_signal,
    container_exit,
    launcher_sees_the_end_late,
    announced_stop,
    announced_stop_without_an_exit,
    node_loss,
    dead_peer_with_survivors_blocked,
    silent_rank_while_others_step,
    standby_node,
    launcher_that_logs_while_nothing_moves,
    self_healed_stall,
    back_off,
    waiting_for_nodes,
    rendezvous_alone,
    staggered_pod_restarts,
    late_spool,
    failed_start,
    failed_load,
    blocking_save_without_a_phase,
    watchdog_in_a_start,
    wrapper_at_work,
    gap_without_evidence,
    live_and_silent,
    abandoned_run,
    clean_end,
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_each_signal_gives_its_category_from_its_boundary_on(row):
    row()


def test_every_row_of_the_table_has_its_timeline_and_the_other_way_round():
    named = re.findall(r"\| `(\w+)` \|$", TABLE.read_text(), flags=re.MULTILINE)
    assert named == [row.__name__ for row in ROWS]
