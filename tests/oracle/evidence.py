"""What was known at one moment: events at their corrected times, once each, cut at `as_of`.

Times of a fact are absolute UTC nanoseconds. Everything later than `as_of` is gone after this
module, so that the rest of the oracle never has to think of it again (rules 1 to 3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headway.events import (
    AttemptBound,
    AttemptStarted,
    Clock,
    Envelope,
    Event,
    RunStarted,
    Steps,
    StepsSummary,
)
from headway.step_blocks import unpack
from oracle.scenario import SECOND

DAY = 24 * 3600 * SECOND


@dataclass(frozen=True)
class Fact:
    """One event at its corrected time; `order` sorts facts that share a time."""

    time: int
    order: tuple[int, int, str, int]
    event: Event
    attempt: str | None
    rank: int | None
    source: str


@dataclass(frozen=True)
class Done:
    """One completed step of one rank, or the first `count` steps of a summary of `total`.

    `end` is that of the last step that counts, `whole` that of the record.
    """

    attempt: str
    rank: int
    first: int
    count: int
    total: int
    start: int
    end: int
    whole: int
    wait: int
    detail: bool
    longest: int | None = None
    longest_step: int | None = None


@dataclass(frozen=True)
class Evidence:
    """All facts and all completed steps, each in the order of time."""

    facts: Sequence[Fact]
    done: Sequence[Done]

    def of(self, *kinds: type[Event]) -> list[Fact]:
        """Return the facts of some kinds."""
        return [fact for fact in self.facts if isinstance(fact.event, kinds)]


def gather(envelopes: Iterable[Envelope], as_of: int) -> Evidence:
    """Return what the envelopes told by `as_of`."""
    unique = {(e.producer, e.first_sequence, e.last_sequence): e for e in envelopes}
    offsets = _offsets(unique.values(), as_of)

    def correction(envelope: Envelope) -> int:
        return offsets.get((envelope.node, envelope.boot_id), envelope.anchor)

    known = list(unique.values())
    starts = [_time(e, correction(e)) for e in known if isinstance(e.event, RunStarted)]
    begun = [time for time in starts if time <= as_of]
    oldest = min(begun) - 30 * DAY if begun else -(2**63)
    known = _bind(known, [e for e in known if oldest <= _time(e, correction(e)) <= as_of])
    facts: list[Fact] = []
    done: list[Done] = []
    for envelope in known:
        if isinstance(envelope.event, Steps | StepsSummary):
            found = _done(envelope, correction(envelope), as_of)
            done += [step for step in found if step.end >= oldest]
        elif oldest <= (time := _time(envelope, correction(envelope))) <= as_of:
            rank = -1 if envelope.rank is None else envelope.rank
            order = (time, rank, envelope.producer, envelope.first_sequence)
            facts.append(
                Fact(
                    time,
                    order,
                    envelope.event,
                    envelope.attempt,
                    envelope.rank,
                    envelope.producer,
                )
            )
    facts.sort(key=lambda fact: fact.order)
    done.sort(key=lambda step: (step.end, step.rank, step.first))
    return Evidence(facts, done)


def _time(envelope: Envelope, correction: int) -> int:
    return envelope.monotonic + correction


def _offsets(envelopes: Iterable[Envelope], as_of: int) -> dict[tuple[str | None, str | None], int]:
    """Return the collector's time at which each boot's clock read 0, as told last (rule 1)."""
    clocks = [
        e
        for e in envelopes
        if isinstance(e.event, Clock) and e.anchor + e.monotonic + e.event.offset <= as_of
    ]
    clocks.sort(key=lambda e: (e.monotonic, e.producer, e.first_sequence))
    return {
        (e.node, e.boot_id): e.anchor + e.event.offset for e in clocks if isinstance(e.event, Clock)
    }


def _bind(envelopes: Sequence[Envelope], known: Sequence[Envelope]) -> list[Envelope]:
    """Give records their attempt where a later record of their producer names it.

    What others tell of a rank goes with that rank's latest start at or before it.
    """
    bounds = [(e.producer, e.event) for e in known if isinstance(e.event, AttemptBound)]
    binders = {producer for producer, _ in bounds}

    def bound(envelope: Envelope) -> str | None:
        attempt = envelope.attempt
        for producer, event in bounds:
            if (
                producer == envelope.producer
                and event.first_sequence <= envelope.first_sequence
                and envelope.last_sequence <= event.last_sequence
            ):
                attempt = event.attempt
        return attempt

    starts = sorted(
        (e for e in envelopes if isinstance(e.event, AttemptStarted) and bound(e) != e.attempt),
        key=lambda e: e.monotonic,
    )
    found = []
    for envelope in envelopes:
        attempt = bound(envelope)
        if envelope.producer not in binders and envelope.attempt is not None:
            for start in starts:
                if (
                    (start.node, start.boot_id, start.attempt)
                    == (envelope.node, envelope.boot_id, envelope.attempt)
                    and start.monotonic <= envelope.monotonic
                    and envelope.rank in (None, start.rank)
                ):
                    attempt = bound(start)
        found.append(replace(envelope, attempt=attempt))
    return found


def _done(envelope: Envelope, correction: int, as_of: int) -> list[Done]:
    """Return the completed steps of one envelope that had ended by `as_of` (rules 2 and 3)."""
    event, attempt, rank = envelope.event, envelope.attempt, envelope.rank
    if attempt is None or rank is None:
        return []
    if isinstance(event, Steps):
        return [
            Done(
                attempt=attempt,
                rank=rank,
                first=event.first_step + number,
                count=1,
                total=1,
                start=step.start + correction,
                end=step.start + step.duration + correction,
                whole=step.start + step.duration + correction,
                wait=step.data_wait,
                detail=True,
            )
            for number, step in enumerate(unpack(event.version, event.packed))
            if step.start + step.duration + correction <= as_of
        ]
    assert isinstance(event, StepsSummary)
    start = envelope.monotonic - event.duration + correction
    ends = [
        start + event.duration * (number + 1) // event.num_steps
        for number in range(event.num_steps)
    ]
    count = sum(end <= as_of for end in ends)
    if not count:
        return []
    longest, longest_step = event.longest, event.longest_step
    if count < event.num_steps or count == 1:
        longest = longest_step = None
    return [
        Done(
            attempt=attempt,
            rank=rank,
            first=event.first_step,
            count=count,
            total=event.num_steps,
            start=start,
            end=ends[count - 1],
            whole=ends[-1],
            wait=event.data_wait or 0,
            detail=False,
            longest=longest,
            longest_step=longest_step,
        )
    ]
