"""The agent killed at each of its steps: the next one delivers everything, and tells it once."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.events import Dropped, RankExited
from headway.exporter.agent.agent import Agent
from headway.exporter.node.metrics import NodeMetrics
from headway.exporter.shipping import Shipper
from headway.exporter.spooling.layout import BLOCK
from headway.exporter.spooling.positions import Positions
from headway.exporter.spooling.reader import spools
from headway.exporter.spooling.tailing import Tail
from headway.exporter.spooling.writer import SpoolWriter
from headway.settings import AgentSettings
from otlp_endpoint import OtlpEndpoint, otlp_endpoint
from spooled_rank import Rank

STEPS: tuple[tuple[type, str], ...] = (
    (Shipper, "ship"),
    (Positions, "put"),
    (Positions, "tell_exit"),
    (Positions, "forget"),
    (Tail, "acknowledge"),
    (Tail, "release"),
    (SpoolWriter, "event"),
)
"""What the agent does that outlives it; it is killed before and after each call."""


def die_at(moment: int) -> None:
    """Make this process end at the `moment`-th start or end of a step."""
    count = 0

    def passed() -> None:
        nonlocal count
        count += 1
        if count == moment:
            os._exit(9)

    def deadly(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            passed()
            result = function(*arguments)
            passed()
            return result

        return called

    for owner, name in STEPS:
        setattr(owner, name, deadly(getattr(owner, name)))


def run_agent(folder: Path, endpoint: OtlpEndpoint) -> None:
    settings = AgentSettings(spool=folder, endpoint=endpoint.address, batch=100)
    agent = Agent(settings, NodeMetrics(folder))
    agent.watch()
    while agent.export():
        agent.watch()
    agent.stop()
    agent.run()
    agent.close()


def killed_at(moment: int, folder: Path, endpoint: OtlpEndpoint) -> bool:
    """Run an agent in a child process that dies at a moment; return whether it came to that."""
    child = os.fork()
    if not child:
        try:
            die_at(moment)
            run_agent(folder, endpoint)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the child only ships
def test_whenever_it_is_killed_the_next_agent_completes_the_delivery(tmp_path: Path) -> None:
    moment, killed = 0, True
    while killed:
        moment += 1
        folder = tmp_path / str(moment)
        dead, closed, damaged = (Rank(folder, rank) for rank in range(3))
        for rank in (dead, closed, damaged):
            rank.steps(130)
        damaged.damage(3 * BLOCK + 20)
        producers = [dead.producer, closed.producer, damaged.producer]
        dead.die()
        closed.close()
        damaged.close()
        with otlp_endpoint() as endpoint:
            killed = killed_at(moment, folder, endpoint)
            run_agent(folder, endpoint)
            assert spools(folder) == [], moment
            arrived = endpoint.accepted
        numbers = {
            producer: {
                number
                for item in arrived
                if item.producer == producer
                for number in range(item.first_sequence, item.last_sequence + 1)
            }
            for producer in producers
        }
        assert numbers[dead.producer] == numbers[closed.producer] == set(range(130)), moment
        assert numbers[damaged.producer] == set(range(130)) - {3}, moment
        events = {(item.producer, item.first_sequence): item.event for item in arrived}
        exits = [event for event in events.values() if isinstance(event, RankExited)]
        losses = [event for event in events.values() if isinstance(event, Dropped)]
        # Killed between saying it and remembering that it was said: said twice, never not.
        assert len(exits) in (1, 2), moment
        assert len(losses) in (1, 2), moment
    assert moment > 20
