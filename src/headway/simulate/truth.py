"""What a simulation returns: the events of a run and the truth about it."""

from collections.abc import Mapping
from dataclasses import dataclass

from headway.events import Envelope
from headway.simulate.needs import Need
from headway.simulate.true_incidents import TrueIncident

BAD = ("stalled", "restart", "down")
"""Categories that are bad for infrastructure goodput."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueStraggler:
    """A rank that held the group up, where it ran and for how long in all, in ns."""

    rank: int
    node: str
    excess: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Where the time of a run went; durations in ns, GPU time in GPU-ns."""

    elapsed: int
    categories: Mapping[str, int]
    gpu_time: Mapping[str, int]
    incidents: tuple[TrueIncident, ...]
    stragglers: tuple[TrueStraggler, ...]
    attempts: int
    failed_starts: int
    executed_steps: int
    surviving_steps: int
    highest_step: int
    needs: tuple[Need, ...] = ()

    @property
    def training_goodput(self) -> float:
        """Share of the time in steps that survived."""
        return self.categories.get("productive", 0) / self.elapsed

    @property
    def infrastructure_goodput(self) -> float:
        """Share of the time in which the infrastructure let the run work."""
        bad = sum(self.categories.get(name, 0) for name in BAD)
        return (self.elapsed - bad) / self.elapsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The events of a run and the truth about it; `end` is wall-clock time in UTC ns."""

    run: str
    end: int
    events: list[Envelope]
    truth: Truth
