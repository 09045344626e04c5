"""What recording costs, as recorders and agents tell: the newest samples, held in memory."""

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median_low

from headway.blocks import Part, of_kinds
from headway.events import AgentCost, RecorderCost

_SAMPLES = 60
"""Samples of a run: an hour of them where one rank tells."""
_MOST_RUNS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """What recording a step of one run took: the median and the highest of some steps, in ns."""

    steps: int
    median: int
    highest: int


class OwnCosts:
    """The costs of recording by run and by node; takes events in any order."""

    def __init__(self) -> None:
        """Start without any."""
        self._lock = threading.Lock()
        self._steps: dict[str, deque[int]] = {}
        self._agents: dict[str, tuple[int, AgentCost]] = {}

    def add(self, parts: Iterable[Part]) -> None:
        """Take stored events."""
        for envelope in of_kinds(parts, RecorderCost, AgentCost):
            event = envelope.event
            with self._lock:
                if isinstance(event, RecorderCost) and envelope.run is not None:
                    kept = self._steps.pop(envelope.run, deque(maxlen=_SAMPLES))
                    kept.append(event.step)
                    self._steps[envelope.run] = kept  # the run heard of last comes last
                    while len(self._steps) > _MOST_RUNS:
                        del self._steps[next(iter(self._steps))]
                elif isinstance(event, AgentCost) and envelope.node is not None:
                    time = envelope.anchor + envelope.monotonic
                    known = self._agents.get(envelope.node)
                    if known is None or time >= known[0]:
                        self._agents[envelope.node] = time, event

    def steps(self) -> dict[str, StepCost]:
        """Return the cost of a step by run, the run heard of last first."""
        with self._lock:
            return {
                run: StepCost(steps=len(kept), median=median_low(kept), highest=max(kept))
                for run, kept in reversed(self._steps.items())
            }

    def agent(self, node: str) -> AgentCost | None:
        """Return the newest cost of a node's agent; None where none was told."""
        with self._lock:
            known = self._agents.get(node)
            return None if known is None else known[1]
