"""How checkpoints were written: what they cost the training, what they put on disk, what failed.

A save costs the training its blocking time; what is written beside it costs nothing until a write
takes as long as the interval between two saves. Then saves queue up, and the overlap is gone.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from headway.events import Resumed
from headway.incidents.recovery import distribution
from headway.ledger import CheckpointSummary, Ledger
from headway.ledger.attempts import Attempt

_SECOND = 10**9
STATES = ("open", "claimed", "verified", "revoked", "failed", "incomplete")
"""What became of saves: of an `incomplete` one nobody ever said that it was complete."""


def checkpoint_writing(ledger: Ledger) -> dict[str, Any]:
    """Return figures of all saves of a run as JSON values; times in ns, memory in bytes."""
    saves = ledger.checkpoints
    over = {
        attempt.identity
        for number, attempt in enumerate(ledger.book.attempts)
        if not ledger.is_alive(number)
    }
    states = Counter(_state(save, over) for save in saves)
    pressures = [save.highest_pressure for save in saves if save.highest_pressure is not None]
    depths = [save.queue_depth for save in saves if save.queue_depth is not None]
    lowest = [save.lowest_memory for save in saves if save.lowest_memory is not None]
    return {
        "saves": {state: states[state] for state in STATES},
        "blocking_ns": _over(saves, "blocking"),
        "staging_ns": _over(saves, "staging"),
        "background_ns": _over(saves, "background"),
        "bytes_staged": _over(saves, "bytes_staged"),
        "bytes_written": _over(saves, "bytes_written"),
        "bytes_per_second": distribution([rate for save in saves for rate in _rate(save)]),
        "highest_queue_depth": max(depths, default=None),
        **_overlap(saves),
        "lowest_memory": min(lowest, default=None),
        "highest_memory_pressure": max(pressures, default=None),
        "fallbacks": [_resume(attempt, resume) for attempt, resume in _fallbacks(ledger)],
        "restarts_from_zero": [
            {**_resume(attempt, resume), "newest": newest}
            for attempt, resume, newest in _from_zero(ledger)
        ],
    }


def _state(save: CheckpointSummary, over: set[str]) -> str:
    if save.state != "scheduled":
        return save.state
    return "incomplete" if save.attempt in over else "open"


def _over(saves: Sequence[CheckpointSummary], field: str) -> dict[str, int | None]:
    values = (getattr(save, field) for save in saves)
    return distribution([value for value in values if value is not None])


def _rate(save: CheckpointSummary) -> Iterator[int]:
    """Yield the bytes per second of a save, from its begin to its completion."""
    spent = (save.blocking or 0) + (save.background or 0)
    if save.bytes_written is not None and save.finalized is not None and spent:
        yield save.bytes_written * _SECOND // spent


def _overlap(saves: Sequence[CheckpointSummary]) -> dict[str, Any]:
    """Compare each background write with the time to the next save of the same attempt."""
    intervals, writes, highest = [], [], None
    scheduled = [save for save in saves if save.scheduled is not None]
    for save, following in pairwise(scheduled):
        interval = (following.scheduled or 0) - (save.scheduled or 0)
        if save.attempt != following.attempt or interval <= 0:
            continue
        intervals.append(interval)
        if save.background is not None:
            writes.append((save.background, interval))
            highest = max(highest or 0.0, save.background / interval)
    whole = sum(interval for _, interval in writes)
    return {
        "interval_ns": distribution(intervals),
        "write_to_interval": {
            "mean": sum(write for write, _ in writes) / whole if whole else None,
            "max": highest,
        },
    }


def _resumes(attempt: Attempt) -> list[tuple[int, Resumed]]:
    """Return what an attempt resumed from, as the rank says that resumed most often."""
    return max((log.resumed for log in attempt.ranks.values()), key=len, default=[])


def _fallbacks(ledger: Ledger) -> Iterator[tuple[Attempt, tuple[int, Resumed]]]:
    """Yield what was resumed from an older checkpoint than the one that was asked for."""
    for attempt in ledger.book.attempts:
        for time, record in _resumes(attempt):
            asked = record.requested
            if asked is not None and record.checkpoint not in (None, asked):
                yield attempt, (time, record)


def _from_zero(ledger: Ledger) -> Iterator[tuple[Attempt, tuple[int, Resumed], str | None]]:
    """Yield what started from the beginning although a checkpoint was complete."""
    complete = [save for save in ledger.checkpoints if save.finalized is not None]
    for attempt in ledger.book.attempts:
        for time, record in _resumes(attempt):
            if record.completed:
                continue
            known = [save for save in complete if (save.finalized or 0) <= time]
            newest = max(known, key=lambda save: save.step, default=None)
            if newest is not None or record.requested is not None:
                yield attempt, (time, record), None if newest is None else newest.checkpoint


def _resume(attempt: Attempt, resume: tuple[int, Resumed]) -> dict[str, Any]:
    time, record = resume
    return {
        "attempt": attempt.identity,
        "time": time,
        "requested": record.requested,
        "checkpoint": record.checkpoint,
    }
