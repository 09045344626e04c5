"""The events of a run as they come, and the ledger that is read from them at any time."""

from collections.abc import Iterable

from headway.events import Envelope
from headway.ledger.book import BookReader
from headway.ledger.intake import Intake
from headway.ledger.ledger import Ledger
from headway.ledger.segments import FrozenSegment
from headway.ledger.steps import STEPS


class Timeline:
    """The events of one run, in whatever order and however often they arrive."""

    def __init__(self, run: str) -> None:
        self.run = run
        self._intake = Intake()
        self._reader = BookReader(run)

    def add(self, envelopes: Iterable[Envelope]) -> int:
        """Take in envelopes; return how many held something new."""
        return self._intake.add(envelopes)

    def thin(self, until: int) -> None:
        """Let go of heartbeats that say nothing about any time from `until` on, in UTC ns.

        Ledgers as known at such a time stay the same.
        """
        self._intake.thin(until)

    @property
    def num_records(self) -> int:
        """Return how many records are held; one that tells of many steps counts once."""
        return len(self._intake.envelopes)

    @property
    def num_steps(self) -> int:
        """Return of how many steps records tell one by one."""
        return self._intake.num_steps

    def add_segments(self, segments: Iterable[FrozenSegment]) -> None:
        """Take in what is left of steps whose raw records are gone; before the first ledger."""
        for segment in segments:
            self._intake.segments[segment.attempt].append(segment)

    def without(
        self,
        removed: Iterable[Envelope],
        kept: Iterable[Envelope],
        segments: Iterable[FrozenSegment],
    ) -> "Timeline":
        """Return the run with segments in the place of raw records, of which parts are kept."""
        gone = {(one.producer, one.first_sequence, one.last_sequence) for one in removed}
        other = Timeline(self.run)
        for listed in self._intake.segments.values():
            other.add_segments(listed)
        other.add_segments(segments)
        other.add(
            one
            for one in self._intake.envelopes
            if (one.producer, one.first_sequence, one.last_sequence) not in gone
        )
        other.add(kept)
        return other

    def frozen(self, attempt: str) -> int:
        """Return how many steps of an attempt come from segments."""
        return sum(segment.num_steps for segment in self._intake.segments.get(attempt, ()))

    def step_records(self, attempt: str) -> list[Envelope]:
        """Return the raw records of steps of an attempt."""
        bucket = self._intake.attempts.get(attempt)
        events = [] if bucket is None else bucket.events
        return [e.envelope for e in events if isinstance(e.envelope.event, STEPS)]

    def ledger(self, as_of: int) -> Ledger:
        """Return the ledger as known at a time in UTC ns."""
        return Ledger(self._reader.read(self._intake, as_of))


def ledger(events: Iterable[Envelope], as_of: int) -> Ledger:
    """Return the ledger of one run's events as known at a time in UTC ns."""
    envelopes = list(events)
    timeline = Timeline(next((e.run for e in envelopes if e.run is not None), ""))
    timeline.add(envelopes)
    return timeline.ledger(as_of)
