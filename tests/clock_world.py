"""A world with one true time and nodes whose clocks are wrong, for real recorders and agents.

Only clocks are made up: a node's monotonic clock began at its boot, its wall clock is ahead of
the truth by what the test says. The collector's clock is the truth.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headway.events import CheckpointFinalized, CheckpointScheduled
from headway.exporter import Recorder, identity
from headway.exporter.agent import agent as agent_module
from headway.exporter.agent.agent import Agent
from headway.exporter.node import witness as witness_module
from headway.exporter.node.metrics import NodeMetrics
from headway.exporter.recording import phases as phases_module
from headway.exporter.recording import recorder as recorder_module
from headway.exporter.recording import step_timer as step_timer_module
from headway.settings import AgentSettings, RecorderSettings

SECOND = 10**9
BEGIN = 1_790_000_000 * SECOND


class World:
    """The true time, which moves when told to; called, it is the collector's clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = BEGIN
        self.node: Node | None = None
        self.monkeypatch = monkeypatch
        for module in (agent_module, identity, recorder_module, witness_module):
            monkeypatch.setattr(module, "time", self)
        for module in (phases_module, recorder_module, step_timer_module):
            monkeypatch.setattr(module, "_now", self.monotonic_ns)
        for module in (agent_module, identity):
            monkeypatch.setattr(module, "boot_id", lambda: self.here.boot)
        monkeypatch.setattr(identity, "process_started", self.monotonic_ns)

    def __call__(self) -> int:
        return self.now

    @property
    def here(self) -> "Node":
        """The node on which something happens now."""
        assert self.node is not None
        return self.node

    def passes(self, seconds: float) -> None:
        """Let time pass."""
        self.now += round(seconds * SECOND)

    # What the exporter asks of the module `time`

    def time_ns(self) -> int:
        return self.now + self.here.ahead

    def monotonic_ns(self) -> int:
        return self.here.monotonic()

    def monotonic(self) -> float:
        return self.here.monotonic() / SECOND


class Node:
    """One boot of a node; its wall clock is `ahead` by so many seconds."""

    def __init__(
        self, world: World, folder: Path, name: str, *, ahead: float, boot: str = "b1"
    ) -> None:
        self.world = world
        self.folder = folder / name
        self.folder.mkdir(exist_ok=True)
        self.name = name
        self.boot = f"{name}-{boot}"
        self.ahead = round(ahead * SECOND)
        self.booted = world.now - 1_000 * SECOND

    def monotonic(self) -> int:
        """Return what the monotonic clock of this boot reads."""
        return self.world.now - self.booted

    @contextmanager
    def at_work(self, job: int = 0) -> Iterator[None]:
        """What happens in this block happens on this node, in a job of the scheduler."""
        before = self.world.node
        self.world.node = self
        with self.world.monkeypatch.context() as patched:
            patched.setenv("SLURMD_NODENAME", self.name)
            patched.setenv("SLURM_JOB_ID", str(job))
            yield
        self.world.node = before

    @contextmanager
    def agent(self, endpoint: str) -> Iterator[Agent]:
        """Start an agent that measures the clock once a minute."""
        settings = AgentSettings(spool=self.folder, endpoint=endpoint, gpus=False, nics=False)
        with self.at_work():
            agent = Agent(settings, NodeMetrics(self.folder), self.monotonic)
        yield agent
        agent.close()

    def ship(self, agent: Agent) -> None:
        """Let an agent do everything that is to be done."""
        with self.at_work():
            agent.watch()
            agent._meter.close()  # the measurement that has begun is waited for
            for _ in range(3):
                agent.watch()
                while agent.export():
                    pass

    @contextmanager
    def attempt(self, job: int) -> Iterator[Recorder]:
        """Run one attempt of the run as the only rank."""
        with self.at_work(job):
            assert "HEADWAY_RUN_ID" not in os.environ
            settings = RecorderSettings(spool=self.folder, run_id="7")
            recorder = Recorder("llama", rank=0, settings=settings)
            yield recorder
            recorder.close()

    def train(self, recorder: Recorder, first: int, last: int) -> None:
        """Take steps of one second."""
        for number in range(first, last + 1):
            with recorder.step(number):
                self.world.passes(1)

    def save(self, recorder: Recorder, step: int) -> None:
        """Save a checkpoint that is durable at once."""
        name = f"c{step}"
        recorder.record(CheckpointScheduled(checkpoint=name, step=step))
        recorder.record(CheckpointFinalized(checkpoint=name, step=step))
