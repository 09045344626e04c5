"""The agent against a real endpoint and real spools: ships, remembers, then deletes."""

import json
import shutil
import time
from pathlib import Path

import pytest

from agents import events, sequences, started
from headway.events import Dropped, RankExited, Steps
from headway.exporter.agent import agent as agent_module
from headway.exporter.node.metrics import FAILURES, REFUSED, SHIPPED, NodeMetrics
from headway.exporter.spooling.layout import BLOCK
from headway.exporter.spooling.writer import SMALLEST_SEGMENT
from otlp_endpoint import OtlpEndpoint
from spooled_rank import Rank


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
