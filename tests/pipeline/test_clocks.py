"""Recorders, agents and collector on nodes whose clocks disagree: the ledger is the true one.

The same history happens once with right clocks and once with wrong ones; whatever the clocks, the
order of arrival and the agents' restarts, both ledgers must be equal to the nanosecond.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from clock_world import BEGIN, SECOND, Node, World
from headway.clocks import clock_problems
from headway.collector.api import application
from headway.collector.service import Service
from headway.events import Allocation, Clock, Envelope, RunEnded, RunStarted
from headway.settings import ClientSettings, CollectorSettings
from headway.storage.client import CollectorClient
from headway.storage.store import EventStore
from served import served

RUN = "llama-7"
TRUTH = {
    "startup": 10.0,
    "productive": 200.0,
    "rolled_back": 20.0,
    "down": 120.0,
    "checkpoint_load": 8.0,
}


@dataclass
class Collector:
    """A served collector whose clock is the truth."""

    address: str
    service: Service

    def report(self) -> dict[str, Any]:
        with CollectorClient(ClientSettings(endpoint=self.address)) as client:
            return dict(client.report(RUN))

    def intervals(self) -> list[dict[str, Any]]:
        with CollectorClient(ClientSettings(endpoint=self.address)) as client:
            return list(client.intervals(RUN))

    def categories(self) -> dict[str, float]:
        """Return the time in each category in seconds, where there is any."""
        found = self.report()["categories"]
        return {name: time / SECOND for name, time in found.items() if time}

    def clocks(self) -> list[Envelope]:
        found = self.service.store.envelopes()
        return [envelope for envelope in found if isinstance(envelope.event, Clock)]

    def offsets(self) -> list[tuple[str | None, float]]:
        """Return node and offset in seconds of each stored `clock` event, in order of arrival."""
        return [
            (envelope.node, envelope.event.offset / SECOND)
            for envelope in self.clocks()
            if isinstance(envelope.event, Clock)
        ]

    def metric(self, name: str) -> dict[tuple[str, ...], float]:
        text = httpx.get(f"{self.address}/metrics", trust_env=False).text
        return {
            tuple(sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name
        }


@contextmanager
def collecting(world: World, folder: Path) -> Iterator[Collector]:
    database = folder / "events.duckdb"
    settings = CollectorSettings(commit_interval=0.0, database=database)
    ready = threading.Event()
    service = Service(EventStore.open(database), settings, world)
    service.start(ready.set)
    with closing(service), served(application(service)) as address:
        assert ready.wait(30)
        yield Collector(address, service)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


@pytest.fixture
def collector(world: World, tmp_path: Path) -> Iterator[Collector]:
    with collecting(world, tmp_path) as found:
        yield found


def first_attempt(node: Node) -> None:
    """Start up in 10 s, take 120 steps with a checkpoint at 100, and break."""
    with node.attempt(job=1) as recorder:
        recorder.record(RunStarted(run_name="llama"))
        recorder.record(Allocation(gpus_held=1))
        with recorder.phase("startup"):
            node.world.passes(10)
        node.train(recorder, 1, 100)
        node.save(recorder, 100)
        node.train(recorder, 101, 120)
        recorder.end_attempt(RuntimeError("broken"))


def second_attempt(node: Node) -> None:
    """Load the checkpoint in 8 s and finish."""
    with node.attempt(job=2) as recorder:
        with recorder.phase("checkpoint_load"):
            node.world.passes(8)
        recorder.resumed(100, "c100")
        node.train(recorder, 101, 200)
        recorder.end_attempt()
        recorder.record(RunEnded(reason="completed"))


def ships(node: Node, collector: Collector) -> None:
    """Start an agent, let it ship everything, and stop it."""
    with node.agent(collector.address) as agent:
        node.ship(agent)


def live(one: Node, two: Node, collector: Collector) -> None:
    """Both agents ship while the run goes on."""
    with one.agent(collector.address) as first, two.agent(collector.address) as second:
        first_attempt(one)
        one.ship(first)
        one.world.passes(120)
        second_attempt(two)
        two.ship(second)


def late(one: Node, two: Node, collector: Collector) -> None:
    """The first node's spool waits for an agent until the run is over."""
    first_attempt(one)
    one.world.passes(120)
    second_attempt(two)
    ships(two, collector)
    one.world.passes(3600)
    ships(one, collector)


def restarted(one: Node, two: Node, collector: Collector) -> None:
    """Every shipment is done by another agent."""
    first_attempt(one)
    ships(one, collector)
    ships(one, collector)
    one.world.passes(120)
    ships(one, collector)
    second_attempt(two)
    ships(two, collector)
    ships(one, collector)
    ships(two, collector)


@pytest.mark.parametrize("story", [live, late, restarted])
@pytest.mark.parametrize(
    ("one_ahead", "two_ahead"),
    [
        (-60, 540),
        *(pytest.param(*ahead, marks=pytest.mark.slow) for ahead in ((0, 0), (600, 0), (0.5, 0.2))),
    ],
)
def test_nodes_whose_clocks_disagree_give_the_true_ledger(
    world: World,
    collector: Collector,
    tmp_path: Path,
    one_ahead: float,
    two_ahead: float,
    story: Callable[[Node, Node, Collector], None],
) -> None:
    one = Node(world, tmp_path, "n1", ahead=one_ahead)
    two = Node(world, tmp_path, "n2", ahead=two_ahead)
    story(one, two, collector)
    assert collector.categories() == TRUTH
    report = collector.report()
    assert report["start"] == BEGIN
    assert report["end"] == BEGIN + 358 * SECOND
    far_off = [abs(ahead) > 1 for ahead in (one_ahead, two_ahead)]
    assert [p["kind"] for p in report["problems"]] == ["clock_offset"] * sum(far_off)
    expected = [("n1", -one_ahead), ("n2", -two_ahead)]
    told = [(node, offset) for node, offset in expected if offset]
    assert sorted(collector.offsets()) == sorted(told)
    shown = collector.metric("headway_clock_offset_seconds")
    assert shown == {(node,): offset for node, offset in told}
    ends = [interval["end"] for interval in collector.intervals()]
    assert ends[:-1] == [interval["start"] for interval in collector.intervals()[1:]]


def test_a_node_that_was_booted_again_has_another_offset(
    world: World, collector: Collector, tmp_path: Path
) -> None:
    before = Node(world, tmp_path, "n1", ahead=600)
    first_attempt(before)
    ships(before, collector)
    world.passes(120)
    after = Node(world, tmp_path, "n1", ahead=-60, boot="b2")
    second_attempt(after)
    ships(after, collector)
    assert collector.categories() == TRUTH
    assert collector.offsets() == [("n1", -600.0), ("n1", 60.0)]
    assert collector.metric("headway_clock_offset_seconds") == {("n1",): 60.0}


def test_a_boot_that_put_the_clock_right_needs_no_offset(
    world: World, collector: Collector, tmp_path: Path
) -> None:
    before = Node(world, tmp_path, "n1", ahead=600)
    first_attempt(before)
    ships(before, collector)
    world.passes(120)
    after = Node(world, tmp_path, "n1", ahead=0, boot="b2")
    second_attempt(after)
    ships(after, collector)
    assert collector.categories() == TRUTH
    assert collector.offsets() == [("n1", -600.0)]
    assert collector.metric("headway_clock_offset_seconds") == {}


def test_a_wall_clock_that_is_set_in_mid_attempt_moves_no_event(
    world: World, collector: Collector, tmp_path: Path
) -> None:
    one = Node(world, tmp_path, "n1", ahead=-60)
    two = Node(world, tmp_path, "n2", ahead=0)
    with one.agent(collector.address) as agent:
        with one.attempt(job=1) as recorder:
            recorder.record(RunStarted(run_name="llama"))
            recorder.record(Allocation(gpus_held=1))
            with recorder.phase("startup"):
                world.passes(10)
            one.train(recorder, 1, 50)
            one.ship(agent)
            one.ahead = 0
            one.train(recorder, 51, 100)
            one.save(recorder, 100)
            one.train(recorder, 101, 120)
            one.ship(agent)
            recorder.end_attempt(RuntimeError("broken"))
        one.ship(agent)
    world.passes(120)
    second_attempt(two)
    ships(two, collector)
    assert collector.categories() == TRUTH
    assert collector.offsets() == [("n1", 60.0)]
    problems = clock_problems(list(collector.service.store.envelopes()))
    assert [problem.detail for problem in problems] == [
        "clock of node n1 is 60.000 s behind the collector's; its events are corrected",
        "wall clock of node n1 was set by +60.000 s; no event is moved",
    ]


def test_a_collector_whose_clock_is_put_right_takes_running_attempts_along(
    world: World, collector: Collector, tmp_path: Path
) -> None:
    one, two = (Node(world, tmp_path, name, ahead=0) for name in ("n1", "n2"))
    collector.service.clock = lambda: world.now - 45 * SECOND
    with one.agent(collector.address) as agent:
        with one.attempt(job=1) as recorder:
            recorder.record(RunStarted(run_name="llama"))
            recorder.record(Allocation(gpus_held=1))
            with recorder.phase("startup"):
                world.passes(10)
            one.train(recorder, 1, 100)
            one.save(recorder, 100)
            one.ship(agent)
            collector.service.clock = world
            one.train(recorder, 101, 120)
            world.passes(60)
            one.ship(agent)
            recorder.end_attempt(RuntimeError("broken"))
        one.ship(agent)
    world.passes(60)
    second_attempt(two)
    ships(two, collector)
    assert collector.offsets() == [("n1", -45.0), ("n1", 0.0)]
    found = collector.categories()
    assert found.pop("unattributed") + found.pop("down") == TRUTH["down"]
    assert found == {name: time for name, time in TRUTH.items() if name != "down"}


def test_a_clock_that_is_years_off_is_corrected_before_it_is_judged(
    world: World, collector: Collector, tmp_path: Path
) -> None:
    year = 366 * 86_400
    one = Node(world, tmp_path, "n1", ahead=-20 * year)
    two = Node(world, tmp_path, "n2", ahead=3 * year)
    late(one, two, collector)
    assert collector.categories() == TRUTH
    told = [problem["kind"] for problem in collector.report()["problems"]]
    assert told == ["clock_offset", "clock_offset"]


def test_absurd_stamps_that_nobody_can_correct_are_counted_and_left_out(
    world: World, collector: Collector, tmp_path: Path
) -> None:
    one = Node(world, tmp_path, "n1", ahead=0)
    first_attempt(one)
    ships(one, collector)
    honest = collector.report()
    lost = Node(world, tmp_path, "n2", ahead=2 * 86_400)
    with lost.attempt(job=2) as recorder:
        lost.train(recorder, 101, 110)
    # Shipped from another boot, the spool's own clock is gone for good.
    ships(Node(world, tmp_path, "n2", ahead=0, boot="b2"), collector)
    (problem,) = collector.report()["problems"]
    assert problem["kind"] == "absurd_time"
    lost_records = sum(
        envelope.last_sequence - envelope.first_sequence + 1
        for envelope in collector.service.store.envelopes()
        if envelope.node == "n2" and envelope.run is not None
    )
    assert problem["count"] == lost_records >= 3
    assert collector.report()["steps"] == honest["steps"]
    assert collector.report()["attempts"] == 1


def test_a_wall_clock_that_is_set_between_two_attempts_of_one_boot_moves_no_event(
    world: World, collector: Collector, tmp_path: Path
) -> None:
    one = Node(world, tmp_path, "n1", ahead=-600)
    with one.agent(collector.address) as agent:
        first_attempt(one)
        one.ship(agent)
        world.passes(120)
        one.ahead = 0
        second_attempt(one)
        one.ship(agent)
    assert collector.categories() == TRUTH
