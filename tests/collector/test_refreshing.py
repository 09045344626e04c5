"""All runs are shown together cheaply: what is old says so, and is made new beside the requests."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from headway.collector import refreshing, run_ledger
from headway.collector.ledgers import Ledgers
from headway.collector.refreshing import Refresher
from headway.collector.run_ledger import StillComputing
from headway.events import Envelope, Note, RunEnded
from records import ANCHOR, SECOND, record, steps

START = ANCHOR + 100 * SECOND


@dataclass
class World:
    """Ledgers of live runs whose computing seems to take as long as a test says."""

    monkeypatch: pytest.MonkeyPatch
    now: int = START
    spent: int = 0
    cost: int = 0
    ledgers: Ledgers = field(init=False)

    def __post_init__(self) -> None:
        self.ledgers = Ledgers(lambda: self.now)
        self.monkeypatch.setattr(run_ledger.time, "thread_time_ns", self.work)

    def work(self) -> int:
        """Return the CPU time so far; each ledger looks once before and once after its work."""
        self.spent += self.cost
        return self.spent

    def steps(self, number: int, last: int = 10) -> None:
        self.ledgers.add([of(number, lambda **given: steps(1, last, **given))])

    def highest(self) -> list[int]:
        return [one.report["steps"]["highest"] for one in self.ledgers.fleet().snapshots]


def of(number: int, told: Callable[..., Envelope]) -> Envelope:
    return told(producer=f"{number:032x}", run=f"run-{number}")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_what_changed_in_a_few_small_runs_is_shown_at_once(world: World) -> None:
    world.cost = SECOND // 1000
    for number in range(3):
        world.steps(number)
    assert world.highest() == [10] * 3
    for number in range(3):
        world.steps(number, 20)
    assert world.highest() == [20] * 3
    assert world.ledgers.fleet().as_of == world.now


def test_where_much_changed_the_fleet_stays_as_it_was_and_says_since_when(world: World) -> None:
    world.cost = SECOND // 20
    for number in range(3):
        world.steps(number)
    before = world.ledgers.fleet()
    world.now += SECOND // 2
    for number in range(3):
        world.steps(number, 20)
    after = world.ledgers.fleet()
    assert after.snapshots == before.snapshots
    assert (after.version, after.as_of) == (before.version, START)


def test_what_is_older_than_some_seconds_is_computed_as_far_as_little_time_allows(
    world: World,
) -> None:
    world.cost = SECOND // 20
    for number in range(5):
        world.steps(number)
    world.ledgers.fleet()
    for number in range(5):
        world.steps(number, 20)
    world.now += 10 * SECOND
    assert sorted(world.highest()) == [10, 10, 20, 20, 20]
    assert sorted(world.highest()) == [20] * 5
    assert world.ledgers.fleet().as_of == world.now


def test_the_ledger_of_one_run_is_exact(world: World) -> None:
    world.cost = SECOND // 10
    world.steps(1)
    world.ledgers.snapshot("run-1")
    world.steps(1, 20)
    assert world.ledgers.snapshot("run-1").report["steps"]["highest"] == 20
    assert world.highest() == [20]


def test_a_ledger_that_takes_long_is_up_to_a_second_old_but_for_what_people_say(
    world: World,
) -> None:
    world.cost = SECOND
    world.steps(1)
    first = world.ledgers.snapshot("run-1")
    world.steps(1, 20)
    assert world.ledgers.snapshot("run-1") is first
    world.now += SECOND
    second = world.ledgers.snapshot("run-1")
    assert (second.report["steps"]["highest"], second.report["as_of"]) == (20, world.now)
    said = record(30, Note(text="odd", author="Ada"), producer=f"{9:032x}", run="run-1")
    world.ledgers.add([said])
    assert world.ledgers.snapshot("run-1") is not second


def test_a_run_that_is_new_is_never_left_out(world: World) -> None:
    world.cost = SECOND
    world.steps(1)
    world.ledgers.fleet()
    world.steps(1, 20)
    world.steps(2)
    assert len(world.highest()) == 2


def test_versions_differ_exactly_when_a_ledger_was_computed_again(world: World) -> None:
    world.steps(1)
    ended = record(60, RunEnded(reason="completed"), producer=f"{1:032x}", run="run-1")
    world.ledgers.add([ended])
    first = world.ledgers.fleet()
    world.now += 3600 * SECOND
    again = world.ledgers.fleet()
    assert (again.version, again.snapshots) == (first.version, first.snapshots)
    assert again.as_of == world.now
    world.steps(1, 20)
    assert world.ledgers.fleet().version != first.version
    assert Ledgers(lambda: START).fleet().version != Ledgers(lambda: START).fleet().version


def test_the_refresher_computes_what_changed_the_oldest_first(world: World) -> None:
    world.cost = SECOND // 20
    refresher = Refresher(world.ledgers, lambda: world.now)
    for number in range(3):
        world.steps(number)
    world.ledgers.fleet()
    for number in range(3):
        world.steps(number, 20)
    idle = refresher.refresh()
    assert world.highest() == [10] * 3
    world.now += SECOND
    rests = [refresher.refresh() for _ in range(3)]
    assert world.highest() == [20] * 3
    assert min(rests) > 3 * world.cost / SECOND
    assert refresher.refresh() == idle


def test_many_records_are_taken_in_by_pieces_and_told_as_of_the_first_that_waits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refreshing, "_PIECE", 3)
    refresher = Refresher(world.ledgers, lambda: world.now)
    for number in range(1, 11):
        world.steps(1, number)
        world.now += SECOND
    run = world.ledgers.stale(world.now)[0]
    world.ledgers.asked = time.monotonic()
    assert [refresher.refresh() and run.as_of for _ in range(3)] == [0, 0, 0]
    refresher.refresh()
    assert (run.as_of, world.highest()) == (world.now, [10])
    for number in range(11, 41):
        world.steps(1, number)
        world.now += SECOND
    while run.as_of < START + 11 * SECOND:
        refresher.refresh()
        world.now += 4 * SECOND
    assert run.latest is not None
    highest, told = run.latest.report["steps"]["highest"], run.latest.as_of
    assert 10 < highest < 40
    assert told == START + highest * SECOND
    assert run.is_stale(world.now)
    assert world.ledgers.snapshot("run-1").report["steps"]["highest"] == 40


def test_where_nobody_asks_ledgers_are_refreshed_seldom(world: World) -> None:
    world.cost = SECOND // 20
    refresher = Refresher(world.ledgers, lambda: world.now)
    world.steps(1)
    world.ledgers.fleet()
    world.ledgers.asked -= 3600
    world.steps(1, 20)
    world.now += 2 * SECOND
    refresher.refresh()
    assert len(world.ledgers.stale(world.now)) == 1
    world.now += 10 * SECOND
    refresher.refresh()
    assert world.ledgers.stale(world.now) == []


def test_nobody_waits_for_a_dear_ledger_that_another_thread_computes(world: World) -> None:
    world.cost = SECOND
    world.steps(1)
    first = world.ledgers.snapshot("run-1")
    world.now += 5 * SECOND
    with world.ledgers.stale(world.now)[0]._compute_lock:
        assert world.ledgers.snapshot("run-1") is first
    assert world.ledgers.snapshot("run-1").report["as_of"] == world.now


def test_who_waits_for_a_long_computation_is_asked_to_come_again(world: World) -> None:
    world.steps(1)
    run = world.ledgers.stale(world.now)[0]
    with run._compute_lock, pytest.raises(StillComputing, match="takes long"):
        run.snapshot(0.0)
