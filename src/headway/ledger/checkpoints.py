"""Checkpoints and what is known of them (rules 10 and 12).

A checkpoint belongs to the attempt that scheduled it. It is claimed when its completion was
observed, verified when an attempt resumed from it, revoked from the moment a load of it failed.
"""

from collections import defaultdict
from collections.abc import Iterable
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
    scheduled: int | None = None
    finalized: int | None = None
    blocking: int | None = None
    tier: str | None = None
    durable_since: int | None = None
    state: str = "scheduled"

    @property
    def is_durable(self) -> bool:
        """Whether a surviving step in it is safe: completed, loadable and not only in memory."""
        return self.state in ("claimed", "verified") and self.tier != "memory"

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


def read(events: Iterable[Stamped], as_of: int) -> list[Checkpoint]:
    """Return every save in order of its first evidence; `events` are in order of time."""
    saves: dict[str, list[Checkpoint]] = defaultdict(list)
    for event in events:
        record, time = event.envelope.event, event.time
        if time > as_of:
            continue
        if isinstance(record, CheckpointScheduled):
            _scheduled(saves[record.checkpoint], record, time, event.envelope.attempt)
        elif isinstance(record, CheckpointFinalized):
            save = _newest(saves, record.checkpoint, record.step, event.envelope.attempt)
            if save.finalized is None:
                save.finalized = save.durable_since = time
                save.state = "claimed" if save.state != "verified" else save.state
            save.tier = record.tier or save.tier
        elif isinstance(record, CheckpointFailed):
            save = _newest(saves, record.checkpoint, record.step, event.envelope.attempt)
            if save.finalized is None:
                save.state = "failed"
        elif isinstance(record, CheckpointLoaded | Resumed):
            _loaded(saves, record, time)
        elif isinstance(record, CheckpointLoadFailed) and saves.get(record.checkpoint):
            writer(saves[record.checkpoint], time).state = "revoked"
    found = [save for listed in saves.values() for save in listed]
    found.sort(key=lambda save: (_first_seen(save), save.identity))
    return found


def _first_seen(save: Checkpoint) -> int:
    times = (save.scheduled, save.finalized, save.durable_since)
    return min((time for time in times if time is not None), default=0)


def _scheduled(
    saves: list[Checkpoint], record: CheckpointScheduled, time: int, attempt: str | None
) -> None:
    """Start a save, or note that another rank of the attempt scheduled it too."""
    if saves and saves[-1].attempt == attempt and saves[-1].scheduled is not None:
        save = saves[-1]
        if record.blocking is not None:
            save.blocking = max(save.blocking or 0, record.blocking)
        return
    saves.append(
        Checkpoint(
            record.checkpoint,
            record.step,
            attempt,
            scheduled=time,
            blocking=record.blocking,
            tier=record.tier,
        )
    )


def _newest(
    saves: dict[str, list[Checkpoint]], identity: str, step: int, attempt: str | None
) -> Checkpoint:
    listed = saves[identity]
    if not listed:
        listed.append(Checkpoint(identity, step, attempt))
    same = [save for save in listed if save.attempt == attempt]
    return (same or listed)[-1]


def _loaded(
    saves: dict[str, list[Checkpoint]], record: CheckpointLoaded | Resumed, time: int
) -> None:
    if record.checkpoint is None or not saves.get(record.checkpoint):
        return
    save = writer(saves[record.checkpoint], time)
    save.state = "verified"
    if save.durable_since is None:
        save.durable_since = time


def writer(saves: list[Checkpoint], time: int) -> Checkpoint:
    """Return the save that a load at this time read: the newest completed, else the newest."""
    earlier = [save for save in saves if _first_seen(save) <= time] or saves
    complete = [save for save in earlier if save.finalized is not None and save.finalized <= time]
    alive = [save for save in earlier if save.state != "failed"]
    return (complete or alive or earlier)[-1]
