"""Checkpoints and what is known of them (rules 10 and 12).

A checkpoint belongs to the attempt that scheduled it. It is claimed when its completion was
observed, verified when an attempt resumed from it, revoked from the moment a load of it failed.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headway.events import (
    CheckpointFailed,
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointLoadFailed,
    CheckpointScheduled,
    Resumed,
)
from headway.ledger.intake import Stamped
from headway.ledger.model import CheckpointSummary


@dataclass(slots=True)
class Checkpoint:
    """One save of one checkpoint; times in ns."""

    identity: str
    step: int
    attempt: str | None
    opened: int | None = None
    """When the attempt began to train from the state from which it came to this step."""
    scheduled: int | None = None
    finalized: int | None = None
    failed: int | None = None
    blocking: int | None = None
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
            tier=self.tier,
            state=self.state,
            durable_since=self.durable_since,
        )


def read(
    events: Iterable[Stamped], openings: Mapping[str, Sequence[int]], as_of: int
) -> list[Checkpoint]:
    """Return every save in order of its first evidence; `events` are in order of time.

    `openings` tell when each attempt began to train from each of its states.
    """
    saves: dict[str, list[Checkpoint]] = defaultdict(list)
    told = [event for event in events if event.time <= as_of]
    for event in told:
        scheduled = event.envelope.event
        if isinstance(scheduled, CheckpointScheduled):
            _scheduled(saves[scheduled.checkpoint], scheduled, event, openings)
    for event in told:
        record, time = event.envelope.event, event.time
        if isinstance(record, CheckpointFinalized):
            save = _newest(saves, record, event)
            if save.finalized is None:
                save.finalized = time
            save.durable_since = save.durable_since or time
            save.state = "claimed"
            save.tier = record.tier or save.tier
        elif isinstance(record, CheckpointFailed):
            save = _newest(saves, record, event)
            save.state, save.failed = "failed", time
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
            if record.blocking is not None:
                save.blocking = max(save.blocking or 0, record.blocking)
            return
    saves.append(
        Checkpoint(
            record.checkpoint,
            record.step,
            event.attempt,
            opened=opened,
            scheduled=event.time,
            blocking=record.blocking,
            tier=record.tier,
        )
    )


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
