"""Ranks that died, hang or left a torn spool: what the agent tells for them, once."""

import json
import os
import time
from pathlib import Path

import pytest

from agents import events, sequences, started
from headway.events import Dropped, Heartbeat, RankExited
from headway.exporter.agent import agent as agent_module
from headway.exporter.ends import Parent, leave_to_parent
from headway.exporter.node.metrics import DAMAGED, SHIPPED, NodeMetrics
from headway.exporter.spooling.layout import BLOCK, HEADER, Position, Slot
from otlp_endpoint import OtlpEndpoint
from spooled_rank import Rank


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
