"""Checkpoints and what is known of them (rules 10 and 12).

A checkpoint belongs to the attempt that scheduled it. It is claimed when its completion was
observed, verified when an attempt resumed from it, revoked from the moment a load of it failed.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from headway.events import (
    CheckpointFailed,
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointLoadFailed,
    CheckpointScheduled,
    CheckpointStaged,
    NodeMemory,
    Resumed,
)
from headway.ledger.intake import Stamped
from headway.ledger.model import CheckpointSummary

Number = TypeVar("Number", int, float)

_HOLDS = 600 * 10**9
"""Longest time in ns for which a node's word about its memory holds: twice its longest silence."""


@dataclass(slots=True)
class Checkpoint:
    """One save of one checkpoint; times in ns, amounts in bytes.

    The slowest rank counts for times; bytes are those of all ranks that told theirs.
    """

    identity: str
    step: int
    attempt: str | None
    opened: int | None = None
    """When the attempt began to train from the state from which it came to this step."""
    scheduled: int | None = None
    finalized: int | None = None
    failed: int | None = None
    blocking: int | None = None
    staging: int | None = None
    background: int | None = None
    bytes_staged: int | None = None
    bytes_written: int | None = None
    queue_depth: int | None = None
    lowest_memory: int | None = None
    """Least memory that was available on a node while it was written."""
    highest_pressure: float | None = None
    tier: str | None = None
    durable_since: int | None = None
    state: str = "scheduled"

    @property
    def is_durable(self) -> bool:
        """Whether a surviving step in it is safe: completed, loadable and not only in memory."""
        return self.state in ("claimed", "verified") and self.tier != "memory"

    @property
    def is_reported(self) -> bool:
        """Whether somebody said that it was written; a failure alone says nothing."""
        return self.scheduled is not None or self.finalized is not None

    def summary(self) -> CheckpointSummary:
        """Return the checkpoint as a value."""
        return CheckpointSummary(
            checkpoint=self.identity,
            step=self.step,
            attempt=self.attempt,
            scheduled=self.scheduled,
            finalized=self.finalized,
            blocking=self.blocking,
            staging=self.staging,
            background=self.background,
            bytes_staged=self.bytes_staged,
            bytes_written=self.bytes_written,
            queue_depth=self.queue_depth,
            lowest_memory=self.lowest_memory,
            highest_pressure=self.highest_pressure,
            tier=self.tier,
            state=self.state,
            durable_since=self.durable_since,
        )


def read(
    events: Iterable[Stamped],
    openings: Mapping[str, Sequence[int]],
    as_of: int,
    of_nodes: Sequence[Stamped] = (),
) -> list[Checkpoint]:
    """Return every save in order of its first evidence; `events` are in order of time.

    `openings` tell when each attempt began to train from each of its states, `of_nodes` what
    nodes told of their memory.
    """
    saves: dict[str, list[Checkpoint]] = defaultdict(list)
    told = [event for event in events if event.time <= as_of]
    for event in told:
        scheduled = event.envelope.event
        if isinstance(scheduled, CheckpointScheduled):
            _scheduled(saves[scheduled.checkpoint], scheduled, event, openings)
    memory = _memory([*told, *of_nodes], as_of)
    for event in told:
        record, time = event.envelope.event, event.time
        if isinstance(record, CheckpointStaged):
            _staged(saves[record.checkpoint], record, event)
        elif isinstance(record, CheckpointFinalized):
            save = _newest(saves, record, event)
            _written(save, record)
            if save.finalized is None:
                save.finalized = time
            save.durable_since = save.durable_since or time
            save.state = "claimed"
            save.tier = record.tier or save.tier
        elif isinstance(record, CheckpointFailed):
            save = _newest(saves, record, event)
            save.state, save.failed = "failed", time
            save.background = _larger(save.background, record.background)
        elif isinstance(record, Resumed) and record.checkpoint is not None:
            read_back = writer(saves[record.checkpoint], time)
            if read_back is not None:
                read_back.state = "verified"
                read_back.durable_since = read_back.durable_since or time
        elif isinstance(record, CheckpointLoaded):
            read_back = writer(saves[record.checkpoint], time)
            if read_back is not None and read_back.state == "claimed":
                read_back.state = "verified"
        elif isinstance(record, CheckpointLoadFailed):
            read_back = writer(saves[record.checkpoint], time)
            if read_back is not None:
                read_back.state = "revoked"
    found = [save for listed in saves.values() for save in listed]
    found.sort(key=lambda save: (_first_seen(save), save.identity))
    for save in found:
        for readings in memory.values():
            _squeezed(save, readings)
    return found


def _first_seen(save: Checkpoint) -> int:
    times = (save.scheduled, save.finalized, save.failed, save.durable_since)
    return min((time for time in times if time is not None), default=0)


def _scheduled(
    saves: list[Checkpoint],
    record: CheckpointScheduled,
    event: Stamped,
    openings: Mapping[str, Sequence[int]],
) -> None:
    """Start a save, or note that another rank of the attempt scheduled it too."""
    if event.attempt is None or event.attempt not in openings:
        return
    times = openings[event.attempt]
    opened = times[max(bisect_right(times, event.time) - 1, 0)] if times else None
    for save in saves:
        if save.attempt == event.attempt and save.opened == opened and save.scheduled is not None:
            save.blocking = _larger(save.blocking, record.blocking)
            save.queue_depth = _larger(save.queue_depth, record.queue_depth)
            save.bytes_staged = _sum(save.bytes_staged, record.bytes_staged)
            return
    saves.append(
        Checkpoint(
            record.checkpoint,
            record.step,
            event.attempt,
            opened=opened,
            scheduled=event.time,
            blocking=record.blocking,
            bytes_staged=record.bytes_staged,
            queue_depth=record.queue_depth,
            tier=record.tier,
        )
    )


def _staged(saves: Sequence[Checkpoint], record: CheckpointStaged, event: Stamped) -> None:
    """Note how long a copy took; it is made before its save is scheduled, on another clock."""
    own = [save for save in saves if save.attempt == event.attempt and save.scheduled is not None]
    following = (save for save in own if (save.scheduled or 0) >= event.time)
    save = next(following, own[-1] if own else None)
    if save is not None:
        save.staging = _larger(save.staging, record.duration)


def _written(save: Checkpoint, record: CheckpointFinalized) -> None:
    save.background = _larger(save.background, record.background)
    if record.bytes_total is not None:
        save.bytes_written = record.bytes_total
    elif record.bytes_written is not None:
        save.bytes_written = _sum(save.bytes_written, record.bytes_written)


def _memory(
    events: Iterable[Stamped], as_of: int
) -> Mapping[str | None, Sequence[tuple[int, NodeMemory]]]:
    """Return what each node told of its memory, in order of time."""
    found: dict[str | None, list[tuple[int, NodeMemory]]] = defaultdict(list)
    for event in events:
        record = event.envelope.event
        if isinstance(record, NodeMemory) and event.time <= as_of:
            found[event.envelope.node].append((event.time, record))
    for readings in found.values():
        readings.sort(key=_time)
    return found


def _squeezed(save: Checkpoint, readings: Sequence[tuple[int, NodeMemory]]) -> None:
    """Note how short of memory a node was from the copy to the end of the write.

    A node speaks when something changed, so that what it said last before still holds.
    """
    if save.scheduled is None:
        return
    begin = save.scheduled - (save.blocking or 0)
    ended = [time for time in (save.finalized, save.failed) if time is not None]
    end = min(ended, default=save.scheduled)
    first = bisect_right(readings, begin, key=_time)
    if first and readings[first - 1][0] >= begin - _HOLDS:
        first -= 1
    for _, record in readings[first : bisect_right(readings, end, key=_time)]:
        known = save.lowest_memory
        save.lowest_memory = record.available if known is None else min(known, record.available)
        save.highest_pressure = _larger(save.highest_pressure, record.pressure)


def _time(reading: tuple[int, NodeMemory]) -> int:
    return reading[0]


def _larger(known: Number | None, told: Number | None) -> Number | None:
    if known is None or told is None:
        return told if known is None else known
    return max(known, told)


def _sum(known: int | None, told: int | None) -> int | None:
    return known if told is None else (known or 0) + told


def _newest(
    saves: dict[str, list[Checkpoint]],
    record: CheckpointFinalized | CheckpointFailed,
    event: Stamped,
) -> Checkpoint:
    """Return the save whose completion is meant: the attempt's own, else the newest."""
    listed = saves[record.checkpoint]
    earlier = [save for save in listed if save.scheduled is None or save.scheduled <= event.time]
    if not earlier:
        listed.append(Checkpoint(record.checkpoint, record.step, event.attempt))
        return listed[-1]
    same = [save for save in earlier if save.attempt == event.attempt]
    return (same or earlier)[-1]


def writer(saves: Sequence[Checkpoint], time: int) -> Checkpoint | None:
    """Return the save that a load at this time read: the newest completed, else not failed.

    None if none was scheduled by then; who completes a save need not have written it.
    """
    earlier = [save for save in saves if save.scheduled is not None and save.scheduled <= time]
    complete = [save for save in earlier if save.finalized is not None and save.finalized <= time]
    alive = [save for save in earlier if save.failed is None or save.failed > time]
    return next(reversed(complete or alive or earlier), None)
