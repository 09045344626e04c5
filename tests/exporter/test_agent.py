"""The agent against a real endpoint and real spools: ships, remembers, then deletes."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headway.events import Dropped, Envelope, Heartbeat, RankExited, Steps
from headway.exporter.agent import agent as agent_module
from headway.exporter.agent.agent import Agent
from headway.exporter.ends import Parent, leave_to_parent
from headway.exporter.node.metrics import DAMAGED, FAILURES, REFUSED, SHIPPED, NodeMetrics
from headway.exporter.spooling.layout import BLOCK, HEADER, Position, Slot
from headway.exporter.spooling.writer import SMALLEST_SEGMENT
from headway.settings import AgentSettings
from otlp_endpoint import OtlpEndpoint, otlp_endpoint
from spooled_rank import Rank


@pytest.fixture
def endpoint() -> Iterator[OtlpEndpoint]:
    with otlp_endpoint() as served:
        yield served


@pytest.fixture
def metrics(tmp_path: Path) -> NodeMetrics:
    return NodeMetrics(tmp_path)


@contextmanager
def started(
    endpoint: OtlpEndpoint, folder: Path, metrics: NodeMetrics, batch: int = 5000
) -> Iterator[Agent]:
    agent = Agent(AgentSettings(spool=folder, endpoint=endpoint.address, batch=batch), metrics)
    agent.watch()
    yield agent
    agent.close()


def sequences(envelopes: list[Envelope], producer: str) -> list[int]:
    return [
        number
        for envelope in envelopes
        if envelope.producer == producer
        for number in range(envelope.first_sequence, envelope.last_sequence + 1)
    ]


def events(endpoint: OtlpEndpoint, kind: type) -> list[Envelope]:
    return [envelope for envelope in endpoint.accepted if isinstance(envelope.event, kind)]


def test_what_ranks_record_arrives_and_a_closed_spool_is_gone(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    first, second = Rank(tmp_path, 0), Rank(tmp_path, 1)
    first.steps(150)
    second.note("hello")
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
        first.steps(50)
        first.close()
        agent.export()
    assert sequences(endpoint.accepted, first.producer) == list(range(200))
    assert sequences(endpoint.accepted, second.producer) == [0]
    assert (first.folder.exists(), second.folder.exists()) == (False, True)
    assert metrics.counters[SHIPPED] == 201
    assert events(endpoint, RankExited) == []
    assert [envelope.event.first_step for envelope in events(endpoint, Steps)] == [1, 151]
    second.close()


def test_one_export_takes_a_bounded_number_of_records_from_each_spool_in_turn(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    ranks = [Rank(tmp_path, 0), Rank(tmp_path, 1)]
    for rank in ranks:
        rank.steps(250)
    with started(endpoint, tmp_path, metrics, batch=100) as agent:
        while agent.export():
            pass
    sizes = [
        [(item.producer, item.last_sequence - item.first_sequence + 1) for item in request]
        for request in endpoint.requests
    ]
    assert sizes[:2] == [[(ranks[0].producer, 100)], [(ranks[1].producer, 100)]]
    for rank in ranks:
        assert sequences(endpoint.accepted, rank.producer) == list(range(250))
        rank.close()


def test_segments_are_deleted_only_after_they_were_acknowledged(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    rank = Rank(tmp_path, limit=20 * SMALLEST_SEGMENT)
    rank.steps(3 * SMALLEST_SEGMENT // BLOCK)
    segments = sorted(rank.folder.glob("*.segment"))
    endpoint.answer = lambda batch: 503
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
        assert sorted(rank.folder.glob("*.segment")) == segments
        assert metrics.counters[FAILURES] == 1
        endpoint.answer = lambda batch: 200
        agent.export()
        assert sorted(rank.folder.glob("*.segment")) == segments[-1:]
    rank.close()


def test_the_next_agent_goes_on_where_the_last_one_was_acknowledged(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    rank = Rank(tmp_path)
    rank.steps(10)
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
    rank.steps(5)
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
    assert sequences(endpoint.accepted, rank.producer) == list(range(15))
    rank.close()


def test_a_lost_memory_costs_a_second_delivery_and_nothing_else(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics, caplog: pytest.LogCaptureFixture
) -> None:
    rank = Rank(tmp_path)
    rank.steps(10)
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
    (tmp_path / "positions.json").write_text('{"positions": {"torn')
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
    assert sequences(endpoint.accepted, rank.producer) == [*range(10), *range(10)]
    assert "sent again from their start" in caplog.text
    rank.close()


def test_after_a_lost_memory_deleted_records_do_not_count_as_lost(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    rank = Rank(tmp_path, limit=20 * SMALLEST_SEGMENT)
    rank.steps(3 * SMALLEST_SEGMENT // BLOCK)
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
    (tmp_path / "positions.json").unlink()
    rank.steps(1)
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
        agent.watch()
        agent.export()
    assert events(endpoint, Dropped) == []
    rank.close()


def test_what_is_remembered_of_spools_that_somebody_removed_is_forgotten(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    rank = Rank(tmp_path)
    rank.steps(10)
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
    rank.close()
    shutil.rmtree(rank.folder)
    with started(endpoint, tmp_path, metrics) as agent:
        agent.stop()
        agent.run()
    assert json.loads((tmp_path / "positions.json").read_text())["positions"] == {}


def test_a_rank_that_died_without_a_word_is_told_once(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    rank = Rank(tmp_path, 3)
    rank.steps(10)
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
        before = time.monotonic_ns()
        rank.die()
        for _ in range(3):
            agent.watch()
            agent.export()
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
    (exit_seen,) = events(endpoint, RankExited)
    assert exit_seen.event == RankExited(by="unknown", process_id=4242)
    assert (exit_seen.run, exit_seen.rank, exit_seen.node) == ("llama-7", 3, "n1")
    assert exit_seen.attempt == f"{7:016x}"
    assert before < exit_seen.monotonic < time.monotonic_ns()
    assert not rank.folder.exists()


def test_a_death_is_told_once_though_the_collector_was_away_and_the_agent_died(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    rank = Rank(tmp_path)
    rank.steps(10)
    endpoint.answer = lambda batch: 503
    with started(endpoint, tmp_path, metrics) as agent:
        rank.die()
        agent.watch()
        agent.export()
    endpoint.answer = lambda batch: 200
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
        agent.export()
    assert len(events(endpoint, RankExited)) == 1


def test_a_death_is_told_by_the_agent_where_the_parent_dies_before_it_could(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    mark = "a" * 32
    parent, rank = Parent(tmp_path, mark), Rank(tmp_path, 0)
    leave_to_parent(rank.folder, mark)
    rank.steps(7)
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
        rank.die()
        for _ in range(3):
            agent.watch()
            agent.export()
        assert rank.folder.exists(), "the parent is to find it"
        parent.close()
        for _ in range(3):
            agent.watch()
            agent.export()
    assert len(events(endpoint, RankExited)) == 1
    assert not rank.folder.exists()


def test_an_orphan_died_at_its_last_activity_as_far_as_anybody_knows(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    rank = Rank(tmp_path)
    rank.steps(10)
    rank.writer.slots[Slot.ACTIVITY] = 123_456_789
    rank.die()
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
        agent.watch()
        agent.export()
    (exit_seen,) = events(endpoint, RankExited)
    assert exit_seen.monotonic == 123_456_789


def test_a_silent_living_rank_is_vouched_for_and_a_busy_one_is_not(
    endpoint: OtlpEndpoint,
    tmp_path: Path,
    metrics: NodeMetrics,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = time.monotonic_ns()
    monkeypatch.setattr(agent_module.time, "monotonic_ns", lambda: now)
    silent, busy = Rank(tmp_path, 0), Rank(tmp_path, 1)
    silent.steps(7)
    endpoint.answer = lambda batch: 503  # a busy rank needs no witness while nobody takes its word
    silent.writer.slots[Slot.LAST_STEP] = 7
    with started(endpoint, tmp_path, metrics) as agent:
        for _ in range(13):  # one look a second
            now += 1_000_000_000
            busy.steps(1)
            agent.watch()
            agent.export()
        endpoint.answer = lambda batch: 200
        agent.export()
    beats = events(endpoint, Heartbeat)
    assert [(beat.rank, beat.event) for beat in beats] == [(0, Heartbeat(last_step=7))] * 2
    silent.close()
    busy.close()


def test_damage_is_counted_and_told_with_the_number_of_records_lost(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    rank = Rank(tmp_path)
    rank.steps(10)
    rank.damage(3 * BLOCK + 20, 2 * BLOCK)
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
        agent.watch()
        agent.export()
    assert sequences(endpoint.accepted, rank.producer) == [0, 1, 2, 6, 7, 8, 9]
    (lost,) = events(endpoint, Dropped)
    assert lost.event.count == 3
    assert metrics.counters[DAMAGED] == 1
    rank.close()


def test_a_spool_without_a_readable_header_is_kept_aside(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    folder = tmp_path / ("f" * 32)
    folder.mkdir()
    (folder / HEADER).write_bytes(b"\0" * 4096)
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
    assert not folder.exists()
    assert (tmp_path / "refused" / folder.name / HEADER).exists()


def test_a_refused_batch_is_counted_and_does_not_hold_up_the_rest(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    bad, good = Rank(tmp_path, 0), Rank(tmp_path, 1)
    bad.note("bad")
    good.note("good")
    endpoint.answer = lambda batch: 400 if any(i.producer == bad.producer for i in batch) else 200
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
        agent.export()
    assert sequences(endpoint.accepted, good.producer) == [0]
    assert (metrics.counters[SHIPPED], metrics.counters[REFUSED]) == (1, 1)
    (kept,) = (tmp_path / "refused").iterdir()
    assert json.loads(kept.read_text())["fields"] == {"text": "bad"}
    bad.close()
    good.close()


def test_an_absent_collector_is_mentioned_once_and_its_return_too(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    rank = Rank(tmp_path)
    rank.note("x")
    endpoint.answer = lambda batch: 503
    with started(endpoint, tmp_path, metrics) as agent:
        for _ in range(3):
            agent.export()
        endpoint.answer = lambda batch: 200
        agent.export()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert metrics.counters[FAILURES] == 3
    rank.close()


def test_the_marker_tells_recorders_that_somebody_ships(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    with started(endpoint, tmp_path, metrics) as agent:
        assert json.loads((tmp_path / "agent.json").read_text())["pid"] > 0
        agent.stop()
        agent.run()
    assert not (tmp_path / "agent.json").exists()


def test_positions_survive_and_dead_producers_leave_no_trace(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    alive, dead = Rank(tmp_path, 0), Rank(tmp_path, 1)
    alive.steps(2)
    dead.steps(2)
    dead.die()
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
        agent.stop()
        agent.run()
    stored = json.loads((tmp_path / "positions.json").read_text())
    assert stored == {
        "positions": {alive.producer: list(Position(1, 2 * BLOCK, 2))},
        "exits_told": [],
    }
    alive.close()


# A25: prometheus/client_python#275
@pytest.mark.slow
def test_a_rank_that_restarts_two_hundred_times_leaves_no_file_and_no_series_of_its_own(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    def left() -> tuple[int, int]:
        series = sum(len(family.samples) for family in metrics.collect())
        return len([path for path in tmp_path.rglob("*") if path.is_file()]), series

    sizes = []
    with started(endpoint, tmp_path, metrics) as agent:
        deadline = time.monotonic() + 60
        while not metrics.clocks:  # the node's own series, which come when the collector answers
            agent.watch()
            assert time.monotonic() < deadline
        for number in range(200):
            rank = Rank(tmp_path, number)
            rank.steps(2)
            rank.die()
            agent.export()  # tells of the death, and lets go of the spool
            agent.watch()
            agent.export()
            sizes.append(left())
    assert sizes[-1] == sizes[1]
    assert metrics.counters[SHIPPED] == 200 * 3  # two steps and a death each
    counted = {name: value for name, labels, value in metrics.counts.samples(0) if labels[1:] == ()}
    assert counted["headway_node_steps_total"] == 2  # ranks of one attempt count once


def test_a_full_disk_stops_neither_the_delivery_nor_the_deletion(
    endpoint: OtlpEndpoint,
    tmp_path: Path,
    metrics: NodeMetrics,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = Rank(tmp_path, 0), Rank(tmp_path, 1)
    with started(endpoint, tmp_path, metrics) as agent:
        monkeypatch.setattr(Path, "replace", no_room)
        for rank in (first, second):
            rank.steps(10)
            rank.close()
            agent.watch()
            agent.export()
    assert metrics.counters[SHIPPED] == 20
    assert not first.folder.exists()
    assert not second.folder.exists()
    assert caplog.text.count("a restart delivers twice") == 1


def no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_torn_end_of_a_dead_rank_is_one_lost_record(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    rank = Rank(tmp_path)
    rank.steps(10)
    rank.damage(9 * BLOCK + 20)
    rank.die()
    with started(endpoint, tmp_path, metrics) as agent:
        agent.export()
        agent.watch()
        agent.export()
    assert sequences(endpoint.accepted, rank.producer) == list(range(9))
    (lost,) = events(endpoint, Dropped)
    assert lost.event.count == 1


def test_a_patient_agent_sends_few_steps_together_and_all_else_at_once(
    endpoint: OtlpEndpoint,
    tmp_path: Path,
    metrics: NodeMetrics,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(agent_module.time, "monotonic", lambda: now)
    rank = Rank(tmp_path)
    rank.steps(10)
    with started(endpoint, tmp_path, metrics, batch=100) as agent:
        agent.export(patient=True)
        assert sequences(endpoint.accepted, rank.producer) == list(range(10))
        rank.steps(5)
        now += 1.9
        agent.watch()
        agent.export(patient=True)
        assert len(endpoint.requests) == 1
        now += 0.2
        agent.export(patient=True)
        assert sequences(endpoint.accepted, rank.producer) == list(range(15))
        rank.steps(3)
        rank.note("hello")
        agent.watch()
        agent.export(patient=True)
        assert sequences(endpoint.accepted, rank.producer) == list(range(19))
        rank.steps(100)
        agent.watch()
        agent.export(patient=True)
        assert sequences(endpoint.accepted, rank.producer) == list(range(119))
    rank.close()


def test_what_a_rank_left_that_died_while_it_made_its_spool_goes_after_a_while(
    endpoint: OtlpEndpoint, tmp_path: Path, metrics: NodeMetrics
) -> None:
    old, young = tmp_path / ".old", tmp_path / ".young"
    for folder in (old, young):
        folder.mkdir()
        (folder / HEADER).touch()
    os.utime(old, (0, 0))
    with started(endpoint, tmp_path, metrics):
        assert not old.exists()
        assert young.exists()
