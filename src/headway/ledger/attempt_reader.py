"""Which events belong to which attempt (rules 5 and 9).

An attempt is bounded by its own identity, never inferred from step numbers. Exits, faults, stops
and restart phases without an identity fall to the newest attempt that had begun by then. An
attempt that only goes on is not read again from its begin.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.ledger.attempt_reading import Reading
from headway.ledger.attempts import Attempt
from headway.ledger.intake import Bucket, Intake, Stamped
from headway.ledger.steps import STEPS


@dataclass(slots=True)
class _Read:
    """An attempt as it was read, and from what; `whole` says that nothing was cut off."""

    bucket: Bucket
    version: int
    num_sorts: int
    adopted: list[Stamped]
    reading: Reading
    attempt: Attempt
    first: int
    last: int
    last_step: int
    whole: bool = False

    def is_known(self, earliest: int | None, steps_until: int, as_of: int) -> bool:
        """Whether nothing in it lies outside of what counts at a time."""
        credible = earliest is None or earliest <= self.first
        return credible and self.last <= as_of and self.last_step <= steps_until

    def goes_on(self, bucket: Bucket, earliest: int | None, steps_until: int, as_of: int) -> bool:
        """Whether what a bucket holds more, if anything, only follows what was read."""
        same = bucket is self.bucket and bucket.num_sorts == self.num_sorts
        return same and self.whole and self.is_known(earliest, steps_until, as_of)


class AttemptReader:
    """Reads the attempts of a run; one that heard nothing new is not read again."""

    def __init__(self) -> None:
        self._read: dict[str, _Read] = {}

    def read(self, intake: Intake, steps_until: int, as_of: int) -> list[Attempt]:
        """Return the attempts in the order in which they began.

        What lies after `as_of` is left out, steps are cut at `steps_until`.
        """
        found: dict[str, Attempt] = {}
        earliest = intake.earliest(as_of)
        for identity, bucket in intake.attempts.items():
            known = self._read.get(identity)
            if (
                known is None
                or known.version != bucket.version
                or not known.goes_on(bucket, earliest, steps_until, as_of)
            ):
                adopted = [] if known is None else known.adopted
                known = self._again(intake, identity, adopted, steps_until, as_of)
            if known is not None:
                found[identity] = known.attempt
        attempts = sorted(found.values(), key=lambda attempt: (attempt.begin, attempt.identity))
        for identity, events in _adopted(intake, attempts, as_of).items():
            if self._read[identity].adopted != events:
                # begin and ranks do not depend on what an attempt adopts
                known = self._again(intake, identity, events, steps_until, as_of)
                if known is not None:
                    found[identity] = known.attempt
        attempts = [found[attempt.identity] for attempt in attempts]
        for number, attempt in enumerate(attempts, start=1):
            attempt.number = number
        return attempts

    def _again(
        self, intake: Intake, identity: str, adopted: list[Stamped], steps_until: int, as_of: int
    ) -> _Read | None:
        bucket = intake.attempts[identity]
        every = bucket.in_order()
        earliest = intake.earliest(as_of)
        known = self._read.get(identity)
        reading = Reading(identity)
        if known is not None and known.goes_on(bucket, earliest, steps_until, as_of):
            reading = known.reading
        reading.take(intake.sane(every, as_of), steps_until, as_of)
        attempt = reading.result(adopted)
        if attempt is None:
            self._read.pop(identity, None)
            return None
        done = (e.time for e in reversed(every) if isinstance(e.envelope.event, STEPS))
        read = _Read(
            bucket=bucket,
            version=bucket.version,
            num_sorts=bucket.num_sorts,
            adopted=adopted,
            reading=reading,
            attempt=attempt,
            first=every[0].time,
            last=every[-1].time,
            last_step=next(done, 0),
        )
        read.whole = read.is_known(earliest, steps_until, as_of)
        self._read[identity] = read
        return read


def _adopted(
    intake: Intake, attempts: Sequence[Attempt], as_of: int
) -> Mapping[str, list[Stamped]]:
    """Give events without an attempt to the newest one that had begun by then.

    An event that names a rank falls to an attempt that has it. Every attempt is answered for.
    """
    found: dict[str, list[Stamped]] = {attempt.identity: [] for attempt in attempts}
    begins = [attempt.begin for attempt in attempts]
    for event in intake.sane(intake.floating.in_order(), as_of):
        if event.time > as_of:
            break
        rank = event.envelope.rank
        for attempt in reversed(attempts[: bisect_right(begins, event.time)]):
            if rank is None or rank in attempt.ranks:
                found[attempt.identity].append(event)
                break
    return found
