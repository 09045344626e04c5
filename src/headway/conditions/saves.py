"""Conditions of a run's checkpoints."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from headway.conditions.gauge import DAY, Condition
from headway.conditions.waiting import is_planned
from headway.ledger import CheckpointSummary, Ledger

_COMPLETE = ("claimed", "verified")
_NEWEST = 10
"""Newest saves of the newest attempt that made any: they say how saving goes now."""
_FEWEST = 2
"""Intervals from which on an attempt says what is usual for it."""


def conditions(ledger: Ledger, report: Mapping[str, Any]) -> Iterator[Condition]:
    """Yield how fresh the newest checkpoint is and how hard it is to write them."""
    stopped = {
        one["attempt_ids"][0]: one["opened"] for one in report["incidents"] if is_planned(one)
    }
    # A save as the run stops comes before its time, and says nothing about the usual one.
    saves = [
        save
        for save in ledger.checkpoints
        if save.scheduled is not None
        and save.scheduled < stopped.get(save.attempt or "", save.scheduled + 1)
    ]
    newest = [save for save in saves if save.attempt == saves[-1].attempt][-_NEWEST:]
    yield "headway_steps_below_newest_checkpoint", (), _below(ledger)
    unreadable = [save for save in ledger.checkpoints if save.state == "revoked"]
    lately = [one for one in unreadable if (one.finalized or 0) > ledger.closed_at - DAY]
    yield "headway_unreadable_checkpoints", (), len(lately)
    usual = _interval(newest, _FEWEST) or _interval(saves, 1)
    if usual:
        yield "headway_checkpoint_interval_ratio", (), _unsaved(ledger) / usual
        written = [save.background for save in newest if save.background is not None]
        if written:
            yield "headway_checkpoint_write_ratio", (), max(written) / usual
    depths = [save.queue_depth for save in newest if save.queue_depth is not None]
    if depths:
        yield "headway_checkpoint_queue_depth", (), max(depths)
    pressures = [save.highest_pressure for save in newest if save.highest_pressure is not None]
    if pressures:
        yield "headway_memory_pressure_ratio", (), max(pressures)


def _unsaved(ledger: Ledger) -> int:
    """Return for how long in ns the attempt that is alive trains without a durable checkpoint."""
    account = ledger.book.accounts[-1] if ledger.book.accounts else None
    if account is None or account.steps is None or not ledger.is_alive(len(ledger.attempts) - 1):
        return 0
    durable = ledger.newest_durable
    saved = 0 if durable is None else durable.durable_since or 0
    return max(0, ledger.closed_at - max(saved, int(account.steps.begin[0])))


def _interval(saves: Sequence[CheckpointSummary], fewest: int) -> int | None:
    """Return the usual time between two saves of one attempt in ns, None while they are too few.

    An attempt with other settings than those before it is judged by its own.
    """
    times = [(save.attempt, save.scheduled) for save in saves if save.scheduled is not None]
    between = [time - before for (one, before), (other, time) in pairwise(times) if one == other]
    return int(median(between)) if len(between) >= fewest else None


def _below(ledger: Ledger) -> int:
    """Return the steps between the newest attempt's state and the newest complete checkpoint.

    Until the run is beyond that checkpoint again. Example: 400 and 700 were claimed, 700 was not
    found and 400 was loaded: 300, until step 700.
    """
    started = [attempt for attempt in ledger.attempts if attempt.resumed is not None]
    if not started:
        return 0
    newest = started[-1]
    known = [save.step for save in ledger.checkpoints if _claimed(save, newest.start)]
    highest = max(known, default=0)
    return 0 if ledger.newest_step >= highest else max(0, highest - (newest.resumed or 0))


def _claimed(save: CheckpointSummary, time: int) -> bool:
    """Whether a save was there to be loaded; a copy in memory goes with its node.

    One that was tried and could not be read was not overlooked.
    """
    finished = save.tier != "memory" and save.finalized is not None and save.finalized <= time
    return finished and save.state in _COMPLETE
