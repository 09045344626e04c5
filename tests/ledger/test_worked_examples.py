"""The three worked examples of the design, to the nanosecond."""

from headway.incidents import incidents, restarts
from headway.ledger import ledger
from reckoning import in_seconds
from timeline import SECOND, at, timeline
from worked_example import KILLED


def test_a_dead_rank_costs_its_stall_the_restart_the_load_and_the_rollback():
    book = ledger(timeline(KILLED), at(754))
    assert in_seconds(book.categories) == {
        "productive": 600,
        "rolled_back": 74,
        "stalled": 60,
        "restart": 12,
        "checkpoint_load": 8,
    }
    assert book.elapsed == 754 * SECOND
    assert in_seconds(book.parts["productive"]) == {"durable": 500, "at_risk": 100}
    assert round(book.training_goodput.low, 3) == 0.796
    assert round(book.infrastructure_goodput.low, 3) == 0.905
    (incident,) = incidents(book)
    assert incident.rollback_steps == 74
    assert incident.rollback == 74 * SECOND
    assert incident.recovered - incident.opened == 81 * SECOND
    assert incident.caught_up - incident.opened == 154 * SECOND
    assert incident.suspect_rank == 3
    assert in_seconds(incident.phases) == {
        "detect": 60,
        "teardown": 8,
        "start": 4,
        "load": 8,
        "recompute": 74,
    }


def test_a_preemption_with_an_exit_save_loses_only_the_queue():
    events = timeline(
        """
        0          allocation 4
        0          attempt A scheduler
        0-1000     steps 1-1000
        1000       stop preemption
        1000-1020  phase checkpoint_save
        1020       scheduled c1000
        1020       finalized c1000
        1025       ended code=0
        1025       allocation 0
        4625       allocation 4
        4625       launcher spawn
        4655       attempt B scheduler
        4655-4663  phase checkpoint_load
        4663       resumed 1000 from=c1000
        4665-4765  steps 1001-1100
        """
    )
    book = ledger(events, at(4765))
    assert in_seconds(book.categories) == {
        "productive": 1100,
        "checkpoint_save": 20,
        "restart": 37,
        "down": 3600,
        "checkpoint_load": 8,
    }
    assert in_seconds(book.parts["down"]) == {"queued": 3600}
    assert round(book.training_goodput.low, 3) == 0.231
    assert round(book.infrastructure_goodput.low, 3) == 0.237
    assert sum(book.gpu_time().values()) == (4765 - 3600) * SECOND * 4
    (incident,) = incidents(book)
    assert incident.rollback_steps == 0
    assert incident.recovered - incident.opened == 3666 * SECOND
    assert (incident.cause, incident.layer) == ("preemption", "scheduler")
    assert restarts(book, [incident]) == {"scheduler": {"preemption": 1}}


def test_a_torn_checkpoint_is_revoked_and_the_older_one_is_trained_from():
    events = timeline(
        """
        0        attempt A launcher
        0-800    steps 1-800
        400      scheduled a400 400
        400      finalized a400 400
        700      scheduled b700 700
        700      finalized b700 700
        800      exit signal=9
        801      launcher stop_workers
        811      attempt B launcher
        817      phase checkpoint_load
        825      exit code=1
        825.5    launcher stop_workers
        841      attempt C launcher
        841-849  phase checkpoint_load error=corrupt
        849      load_failed b700
        849-858  phase checkpoint_load
        858      resumed 400 from=a400
        860-1360 steps 401-900
        """
    )
    book = ledger(events, at(1360))
    assert in_seconds(book.categories) == {
        "productive": 900,
        "rolled_back": 400,
        "stalled": 1,
        "restart": 50,
        "checkpoint_load": 9,
    }
    assert round(book.training_goodput.low, 3) == 0.662
    assert round(book.infrastructure_goodput.low, 4) == 0.9625
    assert [attempt.outcome for attempt in book.attempts] == ["progressed", "no_step", "progressed"]
    assert [(c.checkpoint, c.state) for c in book.checkpoints] == [
        ("a400", "verified"),
        ("b700", "revoked"),
    ]
    (incident,) = incidents(book)
    assert incident.rollback_steps == 400


def test_gpus_that_run_count_before_anyone_says_what_is_held():
    events = timeline(
        """
        0      attempt A launcher world=2 rank=0..1
        10     allocation 4
        10-20  steps 1-10 rank=0..1
        """
    )
    held = ledger(events, at(20)).gpu_time()
    assert in_seconds(held) == {"startup": 20, "productive": 20, "spare": 20}
