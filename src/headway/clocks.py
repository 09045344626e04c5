"""What is wrong with the clocks of a run's nodes: far off, or set while producers recorded.

Event times are safe from both, because offsets are added and the monotonic clock counts (ledger
rule 1). They are worth knowing all the same: the node's logs and files carry the wrong times.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from headway.events import Clock, Envelope
from headway.ledger.model import Problem

STEP = 1_000_000_000
"""Least jump in ns that counts; NTP slews what is smaller instead of stepping."""
FAR_OFF = 1_000_000_000
"""Least offset in ns that people should hear of."""


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


def clock_problems(envelopes: Sequence[Envelope]) -> list[Problem]:
    """Return what a report says about clocks: offsets and steps over a second, by node."""
    latest: dict[tuple[str, str | None], tuple[int, int]] = {}
    for envelope in envelopes:
        if isinstance(envelope.event, Clock):
            key = (envelope.node or "unknown", envelope.boot_id)
            measured = (envelope.monotonic, envelope.event.offset)
            latest[key] = max(latest.get(key, measured), measured)
    problems = []
    for (node, _), (_, offset) in sorted(latest.items(), key=lambda item: (item[0][0], item[1])):
        if abs(offset) > FAR_OFF:
            way = "behind" if offset > 0 else "ahead of"
            detail = (
                f"clock of node {node} is {abs(offset) / 1e9:.3f} s {way} the collector's; "
                "its events are corrected"
            )
            problems.append(Problem(kind="clock_offset", detail=detail))
    steps: dict[str, list[ClockStep]] = defaultdict(list)
    for found in clock_steps(envelopes):
        steps[found.node or "unknown"].append(found)
    for node, jumps in sorted(steps.items()):
        largest = max((step.jump for step in jumps), key=abs)
        detail = f"wall clock of node {node} was set by {largest / 1e9:+.3f} s; no event is moved"
        problems.append(Problem(kind="clock_step", detail=detail, count=len(jumps)))
    return problems


def _ahead(envelope: Envelope) -> int:
    """Return how far the wall clock is ahead of anchor and monotonic clock.

    Exactly 0 means that nobody read it: the time was derived, as that of packed steps is.
    """
    return envelope.wall - envelope.anchor - envelope.monotonic
