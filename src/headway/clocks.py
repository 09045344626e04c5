"""Steps of a producer's wall clock, found by comparing it with the monotonic clock beside it.

Event times are safe from such steps, because the monotonic clock counts (ledger rule 1). They
are worth knowing all the same: logs and files of that node carry the stepped clock's times.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from headway.events import Envelope

STEP = 1_000_000_000
"""Least jump in ns that counts; NTP slews what is smaller instead of stepping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStep:
    """The wall clock jumped between two records of a producer, `at` being the later one's time.

    `jump` is how far the wall clock went ahead (or, negative, back), in ns.
    """

    producer: str
    node: str | None
    at: int
    jump: int


def clock_steps(envelopes: Iterable[Envelope]) -> list[ClockStep]:
    """Return the steps of every producer's wall clock, by producer and in its order of recording.

    Example: recorded 0, 0.002 and 600.001 s off the monotonic clock: one step of 599.999 s.
    """
    read = (envelope for envelope in envelopes if _ahead(envelope) != 0)
    ordered = sorted(read, key=lambda envelope: (envelope.producer, envelope.first_sequence))
    found = []
    for producer, records in groupby(ordered, key=lambda envelope: envelope.producer):
        before = 0  # both clocks were read together for the anchor
        for envelope in records:
            jump = _ahead(envelope) - before
            before += jump
            if abs(jump) > STEP:
                at = envelope.anchor + envelope.monotonic
                found.append(ClockStep(producer=producer, node=envelope.node, at=at, jump=jump))
    return found


def _ahead(envelope: Envelope) -> int:
    """Return how far the wall clock is ahead of anchor and monotonic clock.

    Exactly 0 means that nobody read it: the time was derived, as that of packed steps is.
    """
    return envelope.wall - envelope.anchor - envelope.monotonic
