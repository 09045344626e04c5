"""When a run began and ended (rules 5 and 6)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.events import (
    Allocation,
    AttemptStarted,
    IncidentAcknowledged,
    IncidentCorrected,
    Note,
    RestartPhase,
    ResultAttached,
    RunEnded,
)
from headway.ledger.attempts import Attempt
from headway.ledger.intake import DAY, Stamped

WORDS = (IncidentAcknowledged, IncidentCorrected, Note, ResultAttached)
"""What people say about a run is no sign that it lives."""


@dataclass(frozen=True, slots=True)
class Extent:
    """First evidence of allocation, end (None: still running) and how it ended; times in ns.

    `heard` is the last sign of life: of a machine, an agent, a launcher or a rank.
    """

    start: int
    end: int | None
    state: str
    heard: int


def ending(events: Iterable[Stamped], as_of: int) -> tuple[int, str] | None:
    """Return time and reason of the run's end, unless an attempt began after it."""
    ended: tuple[int, str] | None = None
    for event in events:
        record = event.envelope.event
        if event.time > as_of:
            continue
        if isinstance(record, RunEnded):
            ended = event.time, record.reason
        elif isinstance(record, AttemptStarted) and ended is not None and event.time > ended[0]:
            ended = None
    return ended


def signs(events: Iterable[Stamped], as_of: int) -> tuple[int | None, int]:
    """Return the first time at which machines were held or launched on, and the last sign of life.

    None if there was none, 0 if nothing but people's notes is known.
    """
    first, last = None, 0
    for event in events:
        record = event.envelope.event
        if event.time > as_of:
            break
        held = isinstance(record, Allocation) and record.gpus_held > 0
        # a wrapper lives in a rank's process: it restarts what an attempt began
        launching = isinstance(record, RestartPhase) and record.layer != "in_process"
        if (held or launching) and first is None:
            first = event.time
        if not isinstance(record, WORDS):
            last = max(last, event.time)
    return first, last


def extent(
    told: tuple[int | None, int],
    attempts: Sequence[Attempt],
    ended: tuple[int, str] | None,
    stray: int,
    as_of: int,
) -> Extent | None:
    """Return the run's extent; None if nothing shows that it ever held a machine.

    `told` are the `signs`, `stray` is the time of the last event that belongs to no attempt, 0 if
    there is none. Abandoned means a day without any evidence of allocation, agent, launcher or
    rank.
    """
    first, last = told
    begins = [attempt.begin for attempt in attempts[:1]]
    begins += [] if first is None else [first]
    if not begins:
        return None
    last = max([last, stray, *(attempt.last_evidence for attempt in attempts)])
    start = min(begins)
    if ended is not None:
        return Extent(start, max(ended[0], start), ended[1], last)
    if as_of - last >= DAY:
        return Extent(start, max(last, start), "abandoned", last)
    return Extent(start, None, "running", last)
