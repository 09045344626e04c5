"""Events in, each exactly once: the same records twice, reordered or batched differently change
nothing. Times are put on one clock here (ledger rules 1 and 2); absurd stamps are set aside.

Events are kept by attempt, so that an attempt that hears nothing new is not read again.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headway.events import (
    AttemptBound,
    AttemptStarted,
    CheckpointLoadFailed,
    Clock,
    Envelope,
    Fault,
    GpuFault,
    GpuPresent,
    GpuSample,
    GpuSxid,
    GpuXid,
    Health,
    Heartbeat,
    NicSample,
    NodeMemory,
    PhaseBegan,
    PhaseEnded,
    RankExited,
    RestartPhase,
    RunStarted,
    Steps,
    StepsSummary,
    StopAnnounced,
)
from headway.ledger.binding import Bindings, bindings
from headway.ledger.heartbeats import untold
from headway.ledger.segments import FrozenSegment
from headway.sequences import SequenceSet
from headway.wire import trim

DAY = 86_400 * 10**9
LATEST_AHEAD = DAY
EARLIEST_BEFORE_START = 30 * DAY

BULK = (Heartbeat, PhaseBegan, PhaseEnded, Steps, StepsSummary)
"""Events of which there are many; they matter to their attempt alone."""
ADOPTED = (Fault, RankExited, RestartPhase, StopAnnounced)
"""Events that belong to the newest attempt where they name none."""
OF_ATTEMPT = (*ADOPTED, CheckpointLoadFailed)
"""Events that tell about an attempt even if they name no rank."""
SAMPLES = (GpuSample, NicSample)
"""States of machines, of which there are many."""
OF_NODE = (Fault, GpuFault, GpuPresent, GpuSxid, GpuXid, Health, NodeMemory, *SAMPLES)
"""Events of a node as a whole, where they name no run: evidence of causes, but not of the run."""
THIN_FROM = 1_000
"""Events of an attempt from which on it is worth the while to look for them."""
Offsets = Mapping[tuple[str | None, str | None], int]


class Stamped(NamedTuple):
    """An envelope with its event time in ns, the shift from its monotonic clock to that time, and
    the attempt it belongs to, be it bound later."""

    time: int
    shift: int
    envelope: Envelope
    attempt: str | None

    @property
    def records(self) -> int:
        """Number of records in the envelope."""
        return self.envelope.last_sequence - self.envelope.first_sequence + 1


@dataclass(slots=True)
class Bucket:
    """Events of one attempt in order of time; `version` changes with every event."""

    events: list[Stamped] = field(default_factory=list)
    version: int = 0
    num_sorts: int = 0
    """How often events changed their places; while it stays, new ones only follow the others."""
    _sorted: bool = True
    _thin_at: int = 0

    def add(self, event: Stamped, version: int = 0) -> None:
        """Add an event."""
        if self.events and order(self.events[-1]) > order(event):
            self._sorted = False
        self.events.append(event)
        self.version = version

    def thin(self, since: int, until: int) -> Sequence[Envelope]:
        """Let go of heartbeats between two times that tell nothing, once there are many events.

        Returns them.
        """
        if len(self.events) < max(self._thin_at, THIN_FROM):
            return ()
        beats = [
            (place, event.time, event.envelope.rank)
            for place, event in enumerate(self.in_order())
            if isinstance(event.envelope.event, Heartbeat) and since <= event.time <= until
        ]
        gone = {beats[number][0] for number in untold([beat[1:] for beat in beats])}
        found = [self.events[place].envelope for place in gone]
        if gone:
            self.events = [one for place, one in enumerate(self.events) if place not in gone]
            self.num_sorts += 1
        self._thin_at = 2 * len(self.events)
        return found

    def in_order(self) -> list[Stamped]:
        """Return the events by (time, rank, producer, sequence)."""
        if not self._sorted:
            self.events.sort(key=order)
            self._sorted = True
            self.num_sorts += 1
        return self.events


class Intake:
    """The distinct records of one run."""

    def __init__(self) -> None:
        self._envelopes: list[Envelope] = []
        self._known: dict[str, SequenceSet] = {}
        self._offsets: Offsets = {}
        self._binding: list[Envelope] = []
        self._openings: dict[str, list[Envelope]] = defaultdict(list)
        self._bound = Bindings()
        self._clocks: list[Envelope] = []
        self._version = 0
        self.num_steps = 0
        """Steps of which each was told."""
        self.segments: dict[str, list[FrozenSegment]] = defaultdict(list)
        """What is left of the attempts' steps whose raw records are gone."""
        self._clear()

    def _clear(self) -> None:
        self._starts: list[int] = []
        self.attempts: dict[str, Bucket] = defaultdict(Bucket)
        self.floating = Bucket()
        self.strays = Bucket()
        self.facts = Bucket()
        self.of_nodes = Bucket()
        self.memory = Bucket()

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
        if isinstance(envelope.event, AttemptBound):
            self._binding.append(envelope)
        elif isinstance(envelope.event, AttemptStarted):
            self._openings[envelope.producer].append(envelope)
        elif isinstance(envelope.event, Clock):
            self._clocks.append(envelope)
        elif isinstance(envelope.event, Steps):
            self.num_steps += envelope.last_sequence - envelope.first_sequence + 1
        self._place(envelope)

    def _place(self, envelope: Envelope) -> None:
        shift = envelope.anchor
        if self._offsets:
            # One boot has one monotonic clock, while anchors part where the wall clock was set.
            shift = self._offsets.get((envelope.node, envelope.boot_id), shift)
        attempt = self._bound.attempt(envelope) if self._bound else envelope.attempt
        event = Stamped(envelope.monotonic + shift, shift, envelope, attempt)
        kind = envelope.event
        if is_of_node(envelope):
            # what befalls a machine neither begins nor prolongs a run, nor is it ever absurdly old
            self._version += 1
            bucket = self.memory if isinstance(kind, NodeMemory) else self.of_nodes
            bucket.add(event, self._version)
            return
        if isinstance(kind, RunStarted):
            insort(self._starts, event.time)
        self._version += 1
        bulk = isinstance(kind, BULK)
        if not bulk:
            self.facts.add(event, self._version)
        if attempt is not None:
            if envelope.rank is not None or isinstance(kind, OF_ATTEMPT):
                self.attempts[attempt].add(event, self._version)
        elif isinstance(kind, ADOPTED):
            self.floating.add(event)
        elif bulk:
            self.strays.add(event)

    @property
    def envelopes(self) -> Sequence[Envelope]:
        """Return the distinct records in the order in which they came."""
        return self._envelopes

    def settle(self, as_of: int) -> Counter[str]:
        """Put all events on the clock and into the attempts known at `as_of`.

        Returns the quarantined by producer: stamps over a day after `as_of` or over 30 days before
        `run.started`.
        """
        offsets = _offsets(self._clocks, as_of)
        bound = self._bindings(offsets, as_of)
        if offsets != self._offsets or bound != self._bound:
            self._offsets, self._bound = offsets, bound
            self._clear()
            for envelope in self._envelopes:
                self._place(envelope)
        quarantined: Counter[str] = Counter()
        earliest = self.earliest(as_of)
        buckets = (self.facts, self.floating, self.strays, *self.attempts.values())
        for bucket in buckets:
            events = bucket.in_order()
            if not events or not _absurd(events[0], events[-1], earliest, as_of):
                continue
            for event in events:
                # what is not bulk stands among the facts, too, and is counted there
                counted = bucket is self.facts or isinstance(event.envelope.event, BULK)
                if counted and _absurd(event, event, earliest, as_of):
                    quarantined[event.envelope.producer] += event.records
        return quarantined

    def thin(self, until: int) -> None:
        """Let go of heartbeats that say nothing about any time from `until` on, in UTC ns."""
        earliest = self.earliest(until)
        if earliest is None:
            return  # what is absurdly early is still to be told from the rest, and counted
        gone = {
            id(envelope)
            for bucket in self.attempts.values()
            for envelope in bucket.thin(earliest, until)
        }
        if gone:
            self._envelopes = [one for one in self._envelopes if id(one) not in gone]

    def _bindings(self, offsets: Offsets, as_of: int) -> Bindings:
        """Return what producers told by `as_of` about the attempt of earlier records."""
        if not self._binding:
            return self._bound
        known = []
        for envelope in self._binding:
            shift = offsets.get((envelope.node, envelope.boot_id), envelope.anchor)
            if envelope.monotonic + shift <= as_of:
                known.append(envelope)
        return bindings(known, self._openings)

    def earliest(self, as_of: int) -> int | None:
        """Return the time before which nothing is credible; None if nothing says so."""
        if not self._starts or self._starts[0] > as_of:
            return None
        return self._starts[0] - EARLIEST_BEFORE_START

    def sane(self, events: Sequence[Stamped], as_of: int) -> Sequence[Stamped]:
        """Return the events without the quarantined ones."""
        earliest = self.earliest(as_of)
        if not events or not _absurd(events[0], events[-1], earliest, as_of):
            return events
        return [event for event in events if not _absurd(event, event, earliest, as_of)]

    def times_between(self, start: int, end: int, as_of: int) -> list[int]:
        """Return when there was any evidence between two times, both included, in order."""
        found: set[int] = set()
        for bucket in (self.facts, self.floating, self.strays, *self.attempts.values()):
            events = self.sane(bucket.in_order(), as_of)
            low = bisect_left(events, start, key=_time)
            high = bisect_right(events, min(end, as_of), key=_time)
            found.update(event.time for event in events[low:high])
        return sorted(found)


def is_of_node(envelope: Envelope) -> bool:
    """Whether an event tells of a node, and of no run on it."""
    unnamed = envelope.run is None and envelope.rank is None and envelope.node is not None
    return unnamed and isinstance(envelope.event, OF_NODE)


def occurred(envelope: Envelope) -> int:
    """Return the time of an event in ns by the clock of its node, which may be off."""
    return envelope.anchor + envelope.monotonic


def _time(event: Stamped) -> int:
    return event.time


def _absurd(first: Stamped, last: Stamped, earliest: int | None, as_of: int) -> bool:
    """Whether a stretch of events in order of time reaches beyond what can be true."""
    return last.time > as_of + LATEST_AHEAD or (earliest is not None and first.time < earliest)


def order(event: Stamped) -> tuple[int, int, str, int]:
    """Return what sorts events that share a time."""
    envelope = event.envelope
    rank = -1 if envelope.rank is None else envelope.rank
    return event.time, rank, envelope.producer, envelope.first_sequence


def _offsets(clocks: Iterable[Envelope], as_of: int) -> Offsets:
    """Return the collector's time at which each boot's monotonic clock read 0, as the latest
    `clock` event known at `as_of` tells."""
    latest: dict[tuple[str | None, str | None], tuple[int, str, int, int]] = {}
    for envelope in clocks:
        event = envelope.event
        if isinstance(event, Clock):
            key = (envelope.node, envelope.boot_id)
            zero = envelope.anchor + event.offset
            found = (envelope.monotonic, envelope.producer, envelope.first_sequence, zero)
            if envelope.monotonic + zero <= as_of and (key not in latest or found > latest[key]):
                latest[key] = found
    return {key: found[-1] for key, found in latest.items()}
