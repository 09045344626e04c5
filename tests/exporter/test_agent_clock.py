"""The agent measures its node's clock against a real endpoint and tells the runs."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from headway.events import Clock, Envelope, RankExited
from headway.exporter.agent.agent import Agent
from headway.exporter.agent.service import main
from headway.exporter.node.metrics import NodeMetrics
from headway.settings import AgentSettings
from otlp_endpoint import OtlpEndpoint
from spooled_rank import Rank

SECOND = 10**9


@contextmanager
def started(endpoint: OtlpEndpoint, folder: Path, interval: float = 60.0) -> Iterator[Agent]:
    settings = AgentSettings(spool=folder, endpoint=endpoint.address, clock_interval=interval)
    agent = Agent(settings, NodeMetrics(folder))
    yield agent
    agent.close()


def clocks(endpoint: OtlpEndpoint) -> list[Envelope]:
    return [envelope for envelope in endpoint.accepted if isinstance(envelope.event, Clock)]


def work_until(agent: Agent, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited for too long"
        agent.watch()
        agent.export()


def shown(agent: Agent, name: str) -> float:
    """Return what the metric of node n1 shows."""
    registry = CollectorRegistry()
    registry.register(agent._metrics)
    value = registry.get_sample_value(name, {"node": "n1"})
    assert value is not None
    return value


def test_a_node_whose_clock_is_behind_says_so_once(endpoint: OtlpEndpoint, tmp_path: Path) -> None:
    rank = Rank(tmp_path, behind=60 * SECOND)
    rank.steps(3)
    with started(endpoint, tmp_path, interval=1e-9) as agent:  # measures at every look
        work_until(agent, lambda: clocks(endpoint))
        measured = agent._metrics.clocks["n1"]
        work_until(agent, lambda: agent._metrics.clocks["n1"] != measured)
        assert shown(agent, "headway_clock_offset_seconds") == pytest.approx(60, abs=1)
        assert 0 <= shown(agent, "headway_clock_error_seconds") < 1
    (told,) = clocks(endpoint)
    assert (told.run, told.node, told.rank) == ("llama-7", "n1", None)
    assert told.boot_id is not None
    assert isinstance(told.event, Clock)
    assert told.event.error is not None
    assert abs(told.event.offset - 60 * SECOND) < SECOND // 10 + told.event.error
    (steps,) = {item.anchor for item in endpoint.accepted if item.producer == rank.producer}
    assert told.anchor == steps
    rank.close()


def test_a_node_whose_clock_is_right_says_nothing_and_is_shown(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    with started(endpoint, tmp_path) as agent:
        work_until(agent, lambda: agent._metrics.clocks)
        (own,) = agent._metrics.clocks
        rank = Rank(tmp_path)
        rank.steps(1)
        work_until(agent, lambda: own not in agent._metrics.clocks)
        assert list(agent._metrics.clocks) == ["n1"]
        agent.export()
    assert clocks(endpoint) == []
    rank.close()


def test_a_collector_that_keeps_its_time_to_itself_holds_up_no_record(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    rank, answer = Rank(tmp_path), threading.Event()
    rank.steps(100)

    def slow() -> int:
        answer.wait(30)
        return time.time_ns()

    endpoint.clock = slow
    with started(endpoint, tmp_path) as agent:
        agent.watch()
        agent.export()
        assert len(endpoint.accepted) == 1
        assert not agent._metrics.clocks
        answer.set()
    rank.close()


def test_a_wall_clock_that_was_set_does_not_part_a_death_from_the_ranks_steps(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    rank = Rank(tmp_path, behind=600 * SECOND)
    rank.steps(3)
    with started(endpoint, tmp_path) as agent:
        agent.watch()
        agent.export()
        rank.die()
        exits: list[Envelope] = []
        while not exits:
            agent.watch()
            agent.export()
            exits = [item for item in endpoint.accepted if isinstance(item.event, RankExited)]
    (end,) = exits
    steps = next(item for item in endpoint.accepted if item.producer == rank.producer)
    died = end.anchor + end.monotonic - steps.anchor - steps.monotonic
    assert 0 <= died < 60 * SECOND
    assert end.wall - end.anchor - end.monotonic > 599 * SECOND


def test_a_senseless_interval_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = AgentSettings(spool=tmp_path, clock_interval=0.0)
    assert main(settings) == 2
    assert "clock_interval must be more than 0 seconds, got 0.0" in capsys.readouterr().err
