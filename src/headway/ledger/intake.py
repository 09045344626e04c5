"""Events in, each exactly once: the same records twice, reordered or batched differently change
nothing. Times are put on one clock here (ledger rules 1 and 2); absurd stamps are set aside.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headway.events import Clock, Envelope, RunStarted
from headway.sequences import SequenceSet
from headway.wire import trim

DAY = 86_400 * 10**9
LATEST_AHEAD = DAY
EARLIEST_BEFORE_START = 30 * DAY


@dataclass(frozen=True, slots=True)
class Stamped:
    """An envelope with its event time in ns and the shift from its monotonic clock to that time."""

    time: int
    shift: int
    envelope: Envelope


class Intake:
    """The distinct records of one run."""

    def __init__(self) -> None:
        self._envelopes: list[Envelope] = []
        self._known: dict[str, SequenceSet] = {}

    def add(self, envelopes: Iterable[Envelope]) -> list[Envelope]:
        """Keep what is new of each envelope and return it."""
        new = []
        for envelope in envelopes:
            known = self._known.setdefault(envelope.producer, SequenceSet())
            for first, last in known.missing(envelope.first_sequence, envelope.last_sequence):
                known.add(first, last)
                new.append(trim(envelope, first, last))
        self._envelopes += new
        return new

    def stamped(self, as_of: int) -> tuple[list[Stamped], Counter[str]]:
        """Return the events up to `as_of` in order of time, and the quarantined by producer.

        Order is (time, rank, producer, sequence); a block of steps stays whole here.
        """
        offsets = _offsets(self._envelopes, as_of)
        events = [
            Stamped(envelope.monotonic + shift, shift, envelope)
            for envelope in self._envelopes
            for shift in (envelope.anchor + offsets.get((envelope.node, envelope.boot_id), 0),)
        ]
        started = min(
            (event.time for event in events if isinstance(event.envelope.event, RunStarted)),
            default=None,
        )
        earliest = None if started is None else started - EARLIEST_BEFORE_START
        quarantined: Counter[str] = Counter()
        kept = []
        for event in events:
            absurd = event.time > as_of + LATEST_AHEAD or (
                earliest is not None and event.time < earliest
            )
            if absurd:
                quarantined[event.envelope.producer] += 1
            else:
                kept.append(event)
        kept.sort(key=_order)
        return kept, quarantined


def _order(event: Stamped) -> tuple[int, int, str, int]:
    envelope = event.envelope
    rank = -1 if envelope.rank is None else envelope.rank
    return event.time, rank, envelope.producer, envelope.first_sequence


def _offsets(
    envelopes: Iterable[Envelope], as_of: int
) -> Mapping[tuple[str | None, str | None], int]:
    latest: dict[tuple[str | None, str | None], tuple[int, int]] = {}
    for envelope in envelopes:
        event = envelope.event
        if isinstance(event, Clock):
            time = envelope.anchor + envelope.monotonic
            key = (envelope.node, envelope.boot_id)
            if time <= as_of and (key not in latest or (time, event.offset) > latest[key]):
                latest[key] = (time, event.offset)
    return {key: offset for key, (_, offset) in latest.items()}
