"""The attempt of records that were written before it was known which one it is.

Where nobody counts the launches of a job, its ranks agree on a word once they have met, and each
binds its own records so far to the attempt of that word. What somebody else tells of a rank until
then, such as its agent's heartbeats, knows the rank's provisional attempt only, and follows it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headway.events import AttemptBound, Envelope


class _Opening(NamedTuple):
    """When, on its boot's monotonic clock in ns, a rank opened a provisional attempt, and what
    became of that."""

    monotonic: int
    bound: str
    rank: int | None


@dataclass(frozen=True, slots=True)
class Bindings:
    """What is known about the attempts of earlier records; two that say the same are equal."""

    _of_producers: Mapping[str, Sequence[AttemptBound]] = field(default_factory=dict)
    _openings: Mapping[tuple[str | None, str | None, str], Sequence[_Opening]] = field(
        default_factory=dict
    )
    """By node, boot and provisional attempt, in order."""

    def __bool__(self) -> bool:
        return bool(self._of_producers)

    def attempt(self, envelope: Envelope) -> str | None:
        """Return the attempt that a record belongs to."""
        own = self._of_producers.get(envelope.producer)
        if own is None:
            return self._told(envelope)
        for bound in reversed(own):
            if (
                bound.first_sequence <= envelope.first_sequence
                and envelope.last_sequence <= bound.last_sequence
            ):
                return bound.attempt
        return envelope.attempt

    def _told(self, envelope: Envelope) -> str | None:
        """Return the attempt of a record that is about somebody else than its producer."""
        if envelope.attempt is None:
            return None
        key = envelope.node, envelope.boot_id, envelope.attempt
        for opening in reversed(self._openings.get(key, ())):
            # The next launch at the same address has the same provisional attempt.
            if opening.monotonic <= envelope.monotonic and envelope.rank in (None, opening.rank):
                return opening.bound
        return envelope.attempt


def bindings(bounds: Iterable[Envelope], openings: Mapping[str, Sequence[Envelope]]) -> Bindings:
    """Return what `attempt.bound` events, with each producer's `attempt.started`, say together."""
    of_producers: dict[str, list[AttemptBound]] = {}
    opened: dict[tuple[str | None, str | None, str], list[_Opening]] = {}
    for envelope in bounds:
        bound = envelope.event
        if not isinstance(bound, AttemptBound):
            continue
        of_producers.setdefault(envelope.producer, []).append(bound)
        for start in openings.get(envelope.producer, ()):
            if (
                start.attempt
                and bound.first_sequence <= start.first_sequence <= bound.last_sequence
            ):
                key = start.node, start.boot_id, start.attempt
                opening = _Opening(start.monotonic, bound.attempt, start.rank)
                opened.setdefault(key, []).append(opening)
    for listed in of_producers.values():
        listed.sort(key=lambda one: (one.first_sequence, one.last_sequence, one.attempt))
    for times in opened.values():
        times.sort(key=lambda one: (one.monotonic, one.bound, -1 if one.rank is None else one.rank))
    return Bindings(of_producers, opened)
