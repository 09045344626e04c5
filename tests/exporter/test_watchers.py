"""What the agent records about the node itself, and watchers that break."""

import time
from pathlib import Path

import pytest

from headway.events import GpuXid, NodeMemory
from headway.exporter.agent import agent as agent_module
from headway.exporter.agent.agent import Agent
from headway.exporter.agent.watchers import Watcher
from headway.exporter.identity import boot_id
from headway.exporter.node.metrics import NodeMetrics
from headway.exporter.node.witness import Witness
from headway.exporter.spooling.reader import spools
from headway.settings import AgentSettings
from otlp_endpoint import OtlpEndpoint

XID = GpuXid(code=79, device="0000:3b:00.0")


class Broken:
    """A watcher that fails whenever it is asked."""

    def poll(self) -> None:
        raise RuntimeError("no such driver")

    def close(self) -> None:
        raise RuntimeError("no such driver")


class Memory:
    """A watcher that records the same memory at each look."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self.closed = 0

    def poll(self) -> None:
        self._witness.node_event(NodeMemory(available=7))

    def close(self) -> None:
        self.closed += 1


def test_a_nodes_events_have_no_run_and_one_producer(
    endpoint: OtlpEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_NAME", "n7")
    witness = Witness(tmp_path, 1, boot_id())
    witness.node_event(XID, monotonic=123)
    before = time.monotonic_ns()
    witness.node_event(XID)
    witness.forget_all_but(["llama-7"])
    assert len(spools(tmp_path)) == 1
    agent = Agent(AgentSettings(spool=tmp_path, endpoint=endpoint.address), NodeMetrics(tmp_path))
    agent.watch()
    agent.export()
    agent.close()
    first, second = endpoint.accepted
    assert (first.run, first.attempt, first.rank) == (None, None, None)
    assert (first.node, first.boot_id, first.event) == ("n7", boot_id(), XID)
    assert (first.producer, first.first_sequence) == (second.producer, second.first_sequence - 1)
    assert first.monotonic == 123
    assert before <= second.monotonic <= time.monotonic_ns()
    witness.close()


def test_a_watcher_that_breaks_is_logged_once_and_stops_nobody(
    endpoint: OtlpEndpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made: list[Memory] = []

    def both(settings: AgentSettings, witness: Witness, *_: object) -> list[Watcher]:
        made.append(Memory(witness))
        return [Broken(), *made]

    monkeypatch.setattr(agent_module, "watchers", both)
    agent = Agent(AgentSettings(spool=tmp_path, endpoint=endpoint.address), NodeMetrics(tmp_path))
    for _ in range(3):
        agent.watch()
    agent.stop()
    agent.run()
    agent.close()
    events = [envelope.event for envelope in endpoint.accepted]
    assert events == [NodeMemory(available=7)] * 4
    assert made[0].closed == 1
    assert caplog.text.count("Broken failed; the agent goes on") == 1
    assert spools(tmp_path) == []
