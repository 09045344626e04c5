"""The node's port: the worst ranks, what a rank is doing now, and nothing of a dead one."""

import os
import time
from pathlib import Path

import httpx
import pytest

from agent_process import AgentProcess, agent_process
from headway.exporter.node.metrics import WORST, NodeMetrics
from headway.exporter.node.metrics_server import MetricsServer
from headway.exporter.spooling.layout import HEADER, OpenPhase, Slot
from headway.metrics import METRICS
from otlp_endpoint import otlp_endpoint
from spooled_rank import Rank
from training_process import TrainingProcess

SECOND = 10**9


def samples(metrics: NodeMetrics) -> dict[tuple[str, ...], float]:
    return {
        (sample.name.removeprefix("headway_node_"), *sample.labels.values()): sample.value
        for family in metrics.collect()
        for sample in family.samples
    }


def scraped(agent: AgentProcess) -> str:
    return httpx.get(agent.address + "/metrics", trust_env=False).text


def wait_for(agent: AgentProcess, line: str) -> None:
    deadline = time.monotonic() + 60
    while line not in scraped(agent):
        assert time.monotonic() < deadline, f"no {line!r} in\n{scraped(agent)}"
        time.sleep(0.02)


def test_a_living_rank_shows_its_step_its_silence_and_its_innermost_phase(tmp_path: Path) -> None:
    now = 1000 * SECOND
    metrics = NodeMetrics(tmp_path, lambda: now)
    rank = Rank(tmp_path, 3)
    rank.writer.slots[Slot.LAST_STEP] = 17
    rank.writer.slots[Slot.ACTIVITY] = 990 * SECOND
    rank.writer.phases(
        [OpenPhase("evaluation", 900 * SECOND), OpenPhase("checkpoint_save", 980 * SECOND)]
    )
    found = samples(metrics)
    assert found["ranks", "llama-7"] == 1
    assert found["newest_step", "llama-7"] == 17
    assert found["rank_silence_seconds", "llama-7", "3"] == 10
    assert found["rank_open_phase_seconds", "llama-7", "3", "checkpoint_save"] == 20
    rank.die()
    assert not {labels for labels in samples(metrics) if "llama-7" in labels}


def test_of_many_ranks_the_worst_are_shown(tmp_path: Path) -> None:
    metrics = NodeMetrics(tmp_path, lambda: 1000 * SECOND)
    ranks = [Rank(tmp_path, number) for number in range(8)]
    for number, rank in enumerate(ranks):
        rank.writer.slots[Slot.ACTIVITY] = (900 + number) * SECOND
    shown = [labels for labels in samples(metrics) if labels[0] == "rank_silence_seconds"]
    assert [labels[2] for labels in shown] == ["0", "1", "2"]
    assert len(shown) == WORST
    for rank in ranks:
        rank.close()


# A27: prometheus/client_python#347
@pytest.mark.parametrize("size", [0, 1, 63, 64, 4095, 4097])
def test_a_spool_that_is_cut_or_overwritten_takes_no_scrape_down(tmp_path: Path, size: int) -> None:
    good, cut, overwritten = (Rank(tmp_path, number) for number in range(3))
    good.steps(3)
    for rank in (cut, overwritten):
        rank.die()
    os.truncate(cut.folder / HEADER, size)
    (overwritten.folder / HEADER).write_bytes(bytes(range(256)) * 16)
    (tmp_path / ("e" * 32)).mkdir()  # what was left of one that never began
    server = MetricsServer(NodeMetrics(tmp_path), "127.0.0.1", 0)
    try:
        answer = httpx.get(server.address + "/metrics", trust_env=False)
    finally:
        server.close()
    assert answer.status_code == 200
    assert 'headway_node_ranks{run="llama-7"} 1.0' in answer.text
    # The agent counts the damage when it reads the spool, and sets the spool aside.
    assert "headway_agent_damaged_blocks_total 0.0" in answer.text
    good.close()


def test_every_published_name_is_declared(tmp_path: Path) -> None:
    metrics = NodeMetrics(tmp_path)
    rank = Rank(tmp_path)
    for family in metrics.collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        assert family.documentation == METRICS[name].description
    rank.close()


# A26: prometheus/client_python#495
@pytest.mark.slow
def test_a_killed_rank_is_gone_at_the_next_scrape_and_its_counts_stay(tmp_path: Path) -> None:
    with otlp_endpoint() as endpoint, agent_process(tmp_path, endpoint.address) as agent:
        first = TrainingProcess(tmp_path)
        first.steps(30)
        wait_for(agent, 'headway_node_steps_total{run="llama-7"} 30.0')
        wait_for(agent, 'headway_node_rank_step_seconds{rank="0",run="llama-7"}')
        assert 'headway_node_ranks{run="llama-7"} 1.0' in scraped(agent)
        first.kill()
        text = scraped(agent)
        assert 'rank="0"' not in text
        assert "headway_node_ranks{" not in text
        assert 'headway_node_steps_total{run="llama-7"} 30.0' in text
        second = TrainingProcess(tmp_path)
        second.steps(12)
        wait_for(agent, 'headway_node_steps_total{run="llama-7"} 42.0')
        wait_for(agent, 'headway_node_rank_exits_total{by="unknown",run="llama-7"} 1.0')
        wait_for(agent, 'headway_node_attempts_total{layer="scheduler",run="llama-7"} 2.0')
        assert "_created" not in scraped(agent)
        second.exit()


@pytest.mark.slow
def test_what_ranks_do_is_counted_though_no_collector_answers(tmp_path: Path) -> None:
    with otlp_endpoint() as endpoint:
        endpoint.answer = lambda batch: 503
        with agent_process(tmp_path, endpoint.address, "--batch", "50") as agent:
            rank = TrainingProcess(tmp_path)
            rank.steps(300)
            wait_for(agent, 'headway_node_steps_total{run="llama-7"} 300.0')
            endpoint.answer = lambda batch: 200
            rank.exit()
            wait_for(agent, "headway_agent_spool_bytes 0.0")
            assert 'headway_node_steps_total{run="llama-7"} 300.0' in scraped(agent)
