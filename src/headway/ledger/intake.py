"""Events in, each exactly once: the same records twice, reordered or batched differently change
nothing. Times are put on one clock here (ledger rules 1 and 2); absurd stamps are set aside.

Events are kept by attempt, so that an attempt that hears nothing new is not read again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headway.events import (
    AttemptBound,
    AttemptEnded,
    AttemptStarted,
    CheckpointLoadFailed,
    CheckpointScheduled,
    Clock,
    Envelope,
    Fault,
    Heartbeat,
    PhaseBegan,
    PhaseEnded,
    RankExited,
    Resumed,
    RunStarted,
    Steps,
    StepsSummary,
    StopAnnounced,
)
from headway.sequences import SequenceSet
from headway.wire import trim

DAY = 86_400 * 10**9
LATEST_AHEAD = DAY
EARLIEST_BEFORE_START = 30 * DAY

BULK = (Heartbeat, PhaseBegan, PhaseEnded, Steps, StepsSummary)
"""Events of which there are many; they matter to their attempt alone."""
RANK_EVENTS = (
    *BULK,
    AttemptEnded,
    AttemptStarted,
    CheckpointLoadFailed,
    CheckpointScheduled,
    Fault,
    RankExited,
    Resumed,
    StopAnnounced,
)
"""Events about one rank of one attempt."""
Offsets = Mapping[tuple[str | None, str | None], int]


class Stamped(NamedTuple):
    """An envelope with its event time in ns and the shift from its monotonic clock to that time."""

    time: int
    shift: int
    envelope: Envelope


@dataclass(slots=True)
class Bucket:
    """Events of one attempt in order of time; `version` changes with every event."""

    events: list[Stamped] = field(default_factory=list)
    version: int = 0
    _sorted: bool = True

    def add(self, event: Stamped) -> None:
        """Add an event."""
        if self.events and _order(self.events[-1]) > _order(event):
            self._sorted = False
        self.events.append(event)
        self.version += 1

    def in_order(self) -> list[Stamped]:
        """Return the events by (time, rank, producer, sequence)."""
        if not self._sorted:
            self.events.sort(key=_order)
            self._sorted = True
        return self.events


class Intake:
    """The distinct records of one run."""

    def __init__(self) -> None:
        self._envelopes: list[Envelope] = []
        self._known: dict[str, SequenceSet] = {}
        self._offsets: Offsets = {}
        self._bound: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        self._clocks: list[Envelope] = []
        self._started: int | None = None
        self._clear()

    def _clear(self) -> None:
        self.attempts: dict[str, Bucket] = defaultdict(Bucket)
        self.floating = Bucket()
        self.facts = Bucket()

    def add(self, envelopes: Iterable[Envelope]) -> int:
        """Keep what is new of each envelope; return how many held something new."""
        count = 0
        for envelope in envelopes:
            known = self._known.get(envelope.producer)
            if known is None:
                known = self._known[envelope.producer] = SequenceSet()
            for first, last in known.missing(envelope.first_sequence, envelope.last_sequence):
                known.add(first, last)
                self._keep(trim(envelope, first, last))
                count += 1
        return count

    def _keep(self, envelope: Envelope) -> None:
        self._envelopes.append(envelope)
        event = envelope.event
        if isinstance(event, AttemptBound):
            self._bound[envelope.producer].append(
                (event.first_sequence, event.last_sequence, event.attempt)
            )
            self._rebuild()
            return
        if isinstance(event, Clock):
            self._clocks.append(envelope)
        self._place(envelope)

    def _rebuild(self) -> None:
        """Place every event again, because identities or clocks changed."""
        self._clear()
        for envelope in self._envelopes:
            self._place(envelope)

    def _place(self, envelope: Envelope) -> None:
        shift = envelope.anchor
        if self._offsets:
            shift += self._offsets.get((envelope.node, envelope.boot_id), 0)
        event = Stamped(envelope.monotonic + shift, shift, envelope)
        kind = envelope.event
        if isinstance(kind, RunStarted):
            early = event.time if self._started is None else min(self._started, event.time)
            self._started = early
        if not isinstance(kind, BULK):
            self.facts.add(event)
        if isinstance(kind, RANK_EVENTS):
            identity = self._identity(envelope)
            (self.floating if identity is None else self.attempts[identity]).add(event)

    def _identity(self, envelope: Envelope) -> str | None:
        for first, last, attempt in self._bound.get(envelope.producer, ()):
            if first <= envelope.first_sequence <= last:
                return attempt
        return envelope.attempt

    def settle(self, as_of: int) -> Counter[str]:
        """Put all events on the clock known at `as_of`; return the quarantined by producer.

        Quarantined are stamps over a day after `as_of` or over 30 days before `run.started`.
        """
        offsets = _offsets(self._clocks, as_of)
        if offsets != self._offsets:
            self._offsets = offsets
            self._rebuild()
        quarantined: Counter[str] = Counter()
        earliest = None if self._started is None else self._started - EARLIEST_BEFORE_START
        for bucket in (self.facts, self.floating, *self.attempts.values()):
            events = bucket.in_order()
            if not events or not _absurd(events[0], events[-1], earliest, as_of):
                continue
            for event in events:
                # what is not bulk stands among the facts, too, and is counted there
                counted = bucket is self.facts or isinstance(event.envelope.event, BULK)
                if counted and _absurd(event, event, earliest, as_of):
                    quarantined[event.envelope.producer] += 1
        return quarantined

    def sane(self, events: Sequence[Stamped], as_of: int) -> Sequence[Stamped]:
        """Return the events without the quarantined ones."""
        earliest = None if self._started is None else self._started - EARLIEST_BEFORE_START
        if not events or not _absurd(events[0], events[-1], earliest, as_of):
            return events
        return [event for event in events if not _absurd(event, event, earliest, as_of)]


def _absurd(first: Stamped, last: Stamped, earliest: int | None, as_of: int) -> bool:
    """Whether a stretch of events in order of time reaches beyond what can be true."""
    return last.time > as_of + LATEST_AHEAD or (earliest is not None and first.time < earliest)


def _order(event: Stamped) -> tuple[int, int, str, int]:
    envelope = event.envelope
    rank = -1 if envelope.rank is None else envelope.rank
    return event.time, rank, envelope.producer, envelope.first_sequence


def _offsets(clocks: Iterable[Envelope], as_of: int) -> Offsets:
    latest: dict[tuple[str | None, str | None], tuple[int, int]] = {}
    for envelope in clocks:
        event = envelope.event
        if isinstance(event, Clock):
            time = envelope.anchor + envelope.monotonic
            key = (envelope.node, envelope.boot_id)
            if time <= as_of and (key not in latest or (time, event.offset) > latest[key]):
                latest[key] = (time, event.offset)
    return {key: offset for key, (_, offset) in latest.items()}
