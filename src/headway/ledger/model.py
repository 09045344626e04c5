"""What the ledger knows about a run: its attempts, checkpoints and intervals.

Everything here is a value; how it is derived from events stands in the sibling modules.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A stretch of time of one leaf category; contiguous steps of one fate are one interval.

    `amounts` splits the stretch: steps carry the waits for data between them.
    """

    start: int
    end: int
    category: str
    part: str | None
    attempt: str | None
    first_step: int | None = None
    last_step: int | None = None
    amounts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSummary:
    """One attempt as people see it; times in ns."""

    attempt: str
    number: int
    layer: str
    start: int
    end: int | None
    outcome: str
    resumed: int | None
    checkpoint: str | None
    first_step: int | None
    last_step: int | None
    world_size: int | None
    ended_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSummary:
    """One checkpoint as one attempt wrote it; times in ns, amounts in bytes.

    `lowest_memory` and `highest_pressure` are those of the run's nodes while it was written.
    """

    checkpoint: str
    step: int
    attempt: str | None
    scheduled: int | None
    finalized: int | None
    blocking: int | None
    staging: int | None
    background: int | None
    bytes_staged: int | None
    bytes_written: int | None
    queue_depth: int | None
    lowest_memory: int | None
    highest_pressure: float | None
    tier: str | None
    state: str
    durable_since: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in the events that does not fit, told instead of being swallowed."""

    kind: str
    detail: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A ratio known only between two bounds, with what it was computed from."""

    low: float | None
    high: float | None
    numerator: tuple[int, int]
    denominator: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCounts:
    """Optimizer steps of a run: highest ever, executed, distinct surviving, done again."""

    highest: int
    executed: int
    surviving: int
    rework: int
    target: int | None
