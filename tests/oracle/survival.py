"""Which steps survive, and which of them a durable checkpoint holds (rules 7 and 10 to 12)."""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.events import (
    CheckpointFailed,
    CheckpointFinalized,
    CheckpointLoadFailed,
    CheckpointScheduled,
    Resumed,
)
from oracle.attempts import Attempt, Segment
from oracle.evidence import Evidence, Fact

Key = tuple[int, int, int]
"""Attempt, segment and step."""


@dataclass
class Checkpoint:
    """One scheduled save; the same name scheduled by another segment is another one."""

    name: str
    step: int
    writer: tuple[int, int]
    scheduled: int
    tier: str | None
    durable: bool = False
    finalized: int | None = None
    failed: int | None = None


@dataclass(frozen=True)
class Lineage:
    """The newest state's chain: segments with the range of steps that survives in each."""

    chain: Sequence[tuple[tuple[int, int], int, int]]
    checkpoints: Sequence[Checkpoint]

    def survives(self, key: Key) -> bool:
        """Say whether a step lies on the chain."""
        return any(key[:2] == segment and low < key[2] <= high for segment, low, high in self.chain)

    @property
    def held(self) -> int:
        """Return the highest step that a durable checkpoint on the chain holds."""
        return max(
            (
                c.step
                for c in self.checkpoints
                if c.durable
                and c.tier != "memory"
                and any(c.writer == segment and c.step <= high for segment, _, high in self.chain)
            ),
            default=0,
        )


def restored(segment: Segment) -> int | None:
    """Return how many steps the restored state held (rule 11)."""
    if not segment.steps:
        return segment.completed
    first = min(segment.steps)
    if segment.completed is None or first <= segment.completed:
        return first - 1
    return segment.completed


def lineage(evidence: Evidence, found: Sequence[Attempt]) -> Lineage:
    """Follow the chain from the newest state back to where nothing is known."""
    segments = [s for attempt in found for s in attempt.segments if s.counts]
    checkpoints = _checkpoints(evidence, found)
    chain: list[tuple[tuple[int, int], int, int]] = []
    current = segments[-1] if segments else None
    high = max(current.steps, default=0) if current else 0
    while current is not None:
        low = restored(current) or 0
        high = max(high, low) if not chain else high
        chain.append(((current.attempt, current.number), low, high))
        high = min(high, low)
        earlier = segments[: segments.index(current)]
        current = _parent(current, low, earlier, checkpoints, found)
    return Lineage(chain, checkpoints)


def _parent(
    segment: Segment,
    low: int,
    earlier: Sequence[Segment],
    checkpoints: Sequence[Checkpoint],
    found: Sequence[Attempt],
) -> Segment | None:
    if low == 0:
        return None
    when = segment.resumed
    if when is None:
        when = min(
            s.start
            for (number, _, _), s in found[segment.attempt].steps.items()
            if number == segment.number
        )
    if segment.checkpoint is not None:
        known = {(s.attempt, s.number): s for s in earlier}
        save = _read_back([c for c in checkpoints if c.writer in known], segment.checkpoint, when)
        if save is not None:
            return known[save.writer]
    for other in reversed(earlier):
        if (restored(other) or 0) < low <= max(other.steps, default=0):
            return other
    return None


def _checkpoints(evidence: Evidence, found: Sequence[Attempt]) -> list[Checkpoint]:
    """Return every scheduled save with what became of it (rule 12)."""
    names = {attempt.name: attempt for attempt in found}
    saves: list[Checkpoint] = []

    def completed(fact: Fact, name: str) -> Checkpoint | None:
        """Return the save that a word about its completion means: the attempt's own if any."""
        fits = [c for c in saves if c.name == name and c.scheduled <= fact.time]
        own = [c for c in fits if found[c.writer[0]].name == fact.attempt]
        return next(reversed(own or fits), None)

    scheduled = evidence.of(CheckpointScheduled)
    for fact in scheduled:
        event = fact.event
        assert isinstance(event, CheckpointScheduled)
        attempt = names.get(fact.attempt or "")
        if attempt is None:
            continue
        segment = max((s.number for s in attempt.segments if s.opened <= fact.time), default=0)
        writer = (attempt.number, segment)
        if not any(c.name == event.checkpoint and c.writer == writer for c in saves):
            saves.append(Checkpoint(event.checkpoint, event.step, writer, fact.time, event.tier))
    for fact in evidence.of(CheckpointFinalized, CheckpointFailed, CheckpointLoadFailed, Resumed):
        event = fact.event
        assert isinstance(
            event, CheckpointFinalized | CheckpointFailed | CheckpointLoadFailed | Resumed
        )
        if event.checkpoint is None:
            continue
        if isinstance(event, CheckpointFinalized | CheckpointFailed):
            save = completed(fact, event.checkpoint)
        else:
            save = _read_back(saves, event.checkpoint, fact.time)
        if save is None:
            continue
        save.durable = isinstance(event, CheckpointFinalized | Resumed)
        if isinstance(event, CheckpointFinalized) and save.finalized is None:
            save.finalized = fact.time
        if isinstance(event, CheckpointFailed):
            save.failed = fact.time
        if isinstance(event, CheckpointFinalized) and event.tier is not None:
            save.tier = event.tier
    return saves


def _read_back(saves: Sequence[Checkpoint], name: str, when: int) -> Checkpoint | None:
    """Return the save that a load at that time read: the newest that was completed by then, else
    the newest that had not failed."""
    fits = [c for c in saves if c.name == name and c.scheduled <= when]
    done = [c for c in fits if c.finalized is not None and c.finalized <= when]
    alive = [c for c in fits if c.failed is None or c.failed > when]
    return next(reversed(done or alive or fits), None)
