"""A GPU sampler with its real helper process on the fake driver, and what it recorded."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from gpu_scenario import Scenario
from headway.events import Event
from headway.exporter.gpus.echoes import KernelXids
from headway.exporter.gpus.sampler import GpuSampler

E = TypeVar("E", bound=Event)


class Recorded:
    """Keeps the node's events with their times."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.times: list[int | None] = []

    def node_event(self, event: Event, *, monotonic: int | None = None) -> None:
        self.events.append(event)
        self.times.append(monotonic)

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


class Watch:
    """A sampler that is polled until something holds."""

    def __init__(self, sampler: GpuSampler, recorded: Recorded) -> None:
        self.sampler = sampler
        self.recorded = recorded

    def until(self, condition: Callable[[], Any]) -> None:
        """Poll as the agent does until the condition holds."""
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline, f"too long; {self.recorded.events[-5:]}"
            self.sampler.poll()
            time.sleep(0.005)

    def of(self, kind: type[E]) -> list[E]:
        """Return the recorded events of one kind."""
        return self.recorded.of(kind)


@contextmanager
def gpu_watch(
    scenario: Scenario,
    deadline: float = 30.0,
    kernel: KernelXids | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Watch]:
    """Watch the scenario's GPUs every 0.05 s; `variables` are the helper's, over the scenario's."""
    environment = {**scenario.environment, **(variables or {})}
    recorded = Recorded()
    command = [
        "env",
        *(f"{name}={value}" for name, value in environment.items()),
        *(sys.executable, "-m", "headway.exporter.gpus.helper"),
    ]
    sampler = GpuSampler(recorded, interval=0.05, deadline=deadline, kernel=kernel, command=command)
    try:
        yield Watch(sampler, recorded)
    finally:
        sampler.close()
