"""What the collector writes down by itself, and what it lets go."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from headway.collector.ledgers import Ledgers
from headway.collector.upkeep import Upkeep
from headway.events import Heartbeat
from headway.expiry import MOVING
from headway.ledger import ledger
from headway.report import report
from headway.settings import CollectorSettings
from headway.storage.store import EventStore
from headway.storage.tables import RUNS
from records import record
from timeline import at, timeline

DAY = 86_400 * 10**9
RUN = """
0          run_started llama
0          allocation 2
0          attempt A scheduler world=2 rank=0..1
10-510     steps 1-500 rank=0..1 wait=0.125
510        scheduled c500 500 rank=0..1 blocking=2
512        finalized c500 500
512-1012   steps 501-1000 rank=0..1 wait=0.125
1012       fault exception rank=1
1015       launcher stop_workers
1020       attempt B launcher world=2 rank=0..1
1030       resumed 500 from=c500 rank=0..1
1030-1330  steps 501-800 rank=0..1
"""
END = "1331 run_ended completed\n"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    with closing(EventStore.open(tmp_path / "events.duckdb")) as opened:
        yield opened


def asked(store: EventStore, statement: str) -> list[Any]:
    return [tuple(row.values()) for row in store.reading.sql.ask(statement).table.to_pylist()]


class World:
    """A store with its ledgers and upkeep, and a clock that stands still."""

    def __init__(self, store: EventStore, days: float = 14.0) -> None:
        self.store = store
        self.now = at(1400)
        self.ledgers = Ledgers(lambda: self.now)
        settings = CollectorSettings(step_retention_days=days)
        self.upkeep = Upkeep(store, self.ledgers, settings, lambda: self.now)

    def add(self, text: str) -> None:
        self.ledgers.add(self.store.append(timeline(text)).envelopes)

    def report(self) -> dict[str, Any]:
        found = self.ledgers.snapshot("run").report
        return {name: value for name, value in found.items() if name not in MOVING}


def test_the_views_say_what_the_ledger_says_and_only_what_changed_is_written(
    store: EventStore,
) -> None:
    world = World(store)
    world.add(RUN)
    first = world.upkeep.say()
    assert first == 1 + 2 + 1 + 1
    assert world.upkeep.say() == 0
    world.now += 10**9
    assert world.upkeep.say() > 0
    world.add(RUN + END)
    world.upkeep.say()
    said = world.report()
    assert asked(store, "SELECT state, productive, training_goodput_low FROM v_runs") == [
        ("completed", said["categories"]["productive"], said["training_goodput"]["low"])
    ]
    assert asked(store, "SELECT number, last_step FROM v_attempts ORDER BY 1") == [
        (1, 1000),
        (2, 800),
    ]
    assert asked(store, "SELECT cause, rollback_steps FROM v_incidents") == [("exception", 500)]
    assert asked(store, "SELECT checkpoint, state FROM v_checkpoints") == [("c500", "verified")]


def test_a_new_process_goes_on_with_the_revisions_of_the_old_one(store: EventStore) -> None:
    world = World(store)
    world.add(RUN + END)
    world.upkeep.say()
    again = World(EventStore(store._engine, store._journal))
    again.ledgers.add(list(store.envelopes()))
    assert again.upkeep.say() == 0


def test_steps_expire_after_their_days_and_a_new_process_reports_the_same(
    store: EventStore,
) -> None:
    world = World(store)
    world.add(RUN + END)
    world.now = at(1331) + 13 * DAY
    assert world.upkeep.expire() == 0
    world.now = at(1331) + 15 * DAY
    before = world.report()
    assert world.upkeep.expire() > 0
    assert world.upkeep.expire() == 0
    assert world.report() == before
    restarted = World(store)
    restarted.now = world.now
    restarted.ledgers.restore(store.keeping.segments())
    restarted.ledgers.add(list(store.envelopes()))
    assert restarted.report() == before
    raw = asked(store, "SELECT sum(last_step - first_step + 1) FROM v_steps")[0][0]
    kept = asked(store, "SELECT sum(num_steps) FROM v_segments")[0][0]
    assert raw < 2 * 1300
    assert kept > 0


def test_nothing_expires_where_the_setting_is_0(store: EventStore) -> None:
    world = World(store, days=0)
    world.add(RUN + END)
    world.now = at(1331) + 1000 * DAY
    assert world.upkeep.expire() == 0
    assert store.keeping.segments() == {}


@pytest.mark.slow
def test_events_are_stored_while_old_steps_expire(store: EventStore) -> None:
    world = World(store)
    world.add(RUN + END)
    world.now = at(1331) + 15 * DAY
    stored: list[int] = []

    def write() -> None:
        for number in range(40):
            beat = record(number, Heartbeat(last_step=number), producer="ef" * 16, run="other")
            stored.append(store.append([beat]).num_stored)

    writing = threading.Thread(target=write)
    writing.start()
    assert world.upkeep.expire() > 0
    writing.join()
    assert stored == [1] * 40
    assert sum(1 for one in store.envelopes() if one.run == "other") == 40


def test_the_thread_ends_at_once_when_it_is_closed(store: EventStore) -> None:
    world = World(store)
    world.upkeep.start()
    world.upkeep.close()
    assert not any(thread.name == "headway-upkeep" for thread in threading.enumerate())


def test_the_last_word_is_written_at_the_end(store: EventStore) -> None:
    world = World(store)
    world.upkeep.start()
    world.add(RUN + END)
    world.upkeep.close()
    assert asked(store, "SELECT state FROM v_runs") == [("completed",)]


def test_superseded_rows_go_after_a_day_and_the_word_about_a_run_that_was_over_stays(
    store: EventStore,
) -> None:
    world = World(store, days=0)
    world.add(RUN)
    for _ in range(3):
        world.now += 10**9
        world.upkeep.say()
    world.add(RUN + END)
    world.upkeep.say()
    world.add(RUN + END + "1332 note late\n")
    world.upkeep.say()
    before = revisions(store)
    world.now += DAY + 10**9
    world.upkeep.expire()
    assert before[:3] == [(1, True), (2, True), (3, True)]
    assert revisions(store) == [row for row in before if not row[1]]
    assert len(asked(store, "FROM v_runs")) == 1


def revisions(store: EventStore) -> list[tuple[int, bool]]:
    statement = select(RUNS.c.revision, RUNS.c.provisional).order_by(RUNS.c.revision)
    with store._engine.connect() as connection:
        return [(row.revision, row.provisional) for row in connection.execute(statement)]


def test_a_live_run_goes_on_after_its_steps_expired_as_if_they_had_not(store: EventStore) -> None:
    more = RUN + "1330-1430 steps 801-900 rank=0..1\n1431 run_ended completed\n"
    world = World(store, days=400 / 86_400)
    world.add(RUN)
    world.now = at(1330)
    assert world.upkeep.expire() > 0
    world.add(more)
    world.now = at(1500)
    whole = report(ledger(timeline(more), world.now))
    assert world.report() == {name: whole[name] for name in whole if name not in MOVING}
