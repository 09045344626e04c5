"""An agent in the test's own process, and what an endpoint accepted of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headway.events import Envelope
from headway.exporter.agent.agent import Agent
from headway.exporter.node.metrics import NodeMetrics
from headway.settings import AgentSettings
from otlp_endpoint import OtlpEndpoint


@contextmanager
def started(
    endpoint: OtlpEndpoint, folder: Path, metrics: NodeMetrics, batch: int = 5000
) -> Iterator[Agent]:
    """Start an agent that has looked at the spools of a folder once."""
    agent = Agent(AgentSettings(spool=folder, endpoint=endpoint.address, batch=batch), metrics)
    agent.watch()
    yield agent
    agent.close()


def sequences(envelopes: list[Envelope], producer: str) -> list[int]:
    """Return the numbers of all records of a producer."""
    return [
        number
        for envelope in envelopes
        if envelope.producer == producer
        for number in range(envelope.first_sequence, envelope.last_sequence + 1)
    ]


def events(endpoint: OtlpEndpoint, kind: type) -> list[Envelope]:
    """Return the accepted events of one kind."""
    return [envelope for envelope in endpoint.accepted if isinstance(envelope.event, kind)]
