"""Where watchers put what they found about the node."""

from typing import Protocol

from headway.events import Event


class NodeSink(Protocol):
    """Takes events that are no run's own; the agent's witness is one."""

    def node_event(self, event: Event, *, monotonic: int | None = None) -> None:
        """Record an event; `monotonic` ns, else now."""
