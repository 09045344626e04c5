"""What is known of an attempt and of each of its ranks; times in ns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headway.events import (
    AttemptEnded,
    Fault,
    Heartbeat,
    RankExited,
    RestartPhase,
    Resumed,
    StopAnnounced,
)
from headway.ledger.intake import Stamped
from headway.ledger.longest import Longest
from headway.ledger.steps import StepRows


@dataclass(slots=True)
class Phase:
    """A stretch of one rank; open while `end` is None. `failed` ended by an exception."""

    start: int
    end: int | None
    name: str
    failed: bool = False

    @property
    def is_closed(self) -> bool:
        """Whether it ended and its rank went on; a failed load ends like any other phase."""
        whole = not self.failed or self.name == "checkpoint_load"
        return self.end is not None and self.name != "step" and whole


@dataclass(slots=True)
class RankLog:
    """What one rank of one attempt recorded, in order of time."""

    rank: int
    node: str | None = None
    started: int | None = None
    ended: int | None = None
    last_evidence: int = 0
    rows: list[StepRows] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    resumed: list[tuple[int, Resumed]] = field(default_factory=list)
    saves: list[tuple[int, int]] = field(default_factory=list)
    heartbeat: tuple[int, Heartbeat] | None = None


@dataclass(slots=True)
class Opening:
    """When the attempt began to train from a state, and what `resumed` told of that state."""

    opened: int
    resumed: int | None = None
    completed: int | None = None
    checkpoint: str | None = None


@dataclass(slots=True)
class Attempt:
    """All events of one attempt; times in ns."""

    identity: str
    number: int = 0
    layer: str = "scheduler"
    world_size: int | None = None
    begin: int = 0
    end: int = 0
    ended: bool = False
    last_evidence: int = 0
    ranks: dict[int, RankLog] = field(default_factory=dict)
    openings: list[Opening] = field(default_factory=list)
    faults: list[tuple[int, int | None, Fault]] = field(default_factory=list)
    stops: list[tuple[int, StopAnnounced]] = field(default_factory=list)
    exits: list[tuple[int, int, RankExited | AttemptEnded]] = field(default_factory=list)
    said: list[tuple[int, RestartPhase]] = field(default_factory=list)
    load_failures: list[int] = field(default_factory=list)
    longest: Mapping[str, Longest] = field(default_factory=dict)
    """The longest interval of each phase, by the phase's name."""

    def survivors(self, time: int) -> int:
        """Return how many of its processes were not seen to exit by a time in ns."""
        gone = {
            rank
            for seen, rank, exit_ in self.exits
            if isinstance(exit_, RankExited) and seen <= time
        }
        return len(self.ranks.keys() - gone)


def launcher_states(facts: Iterable[Stamped], as_of: int) -> list[tuple[int, str, RestartPhase]]:
    """Return time, producer and words of launchers and wrappers about restarts, in order."""
    return [
        (fact.time, fact.envelope.producer, fact.envelope.event)
        for fact in facts
        if isinstance(fact.envelope.event, RestartPhase) and fact.time <= as_of
    ]
