"""Events of one imported run as envelopes, also before it is known when they happened.

Lines without a stamp are laid end to end by the durations that they print; the first stamp dates
all that came before it. Who recorded the events is said at the end, by `identity`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.events import Envelope, Event
from headway.importing.identity import Marks, digest, identified

_ATTEMPT_DIGITS = 16
_LATEST = 2**62
"""Times after the year 2116 are no log's."""


@dataclass(slots=True)
class _Row:
    time: int
    rank: int | None
    attempt: int | None
    event: Event
    count: int
    node: str | None


class Journal:
    """Collects the events of one run; times are ns."""

    def __init__(self, run: str, scope: str = "") -> None:
        """Begin; `scope` tells the attempts apart from those of other logs of the run."""
        self.run = run
        self._scope = scope
        self.envelopes: list[Envelope] = []
        self.shift: int | None = None
        """What was added to the times of the lines before the first stamp; None before it."""
        self._early: list[_Row] = []
        self.first: int | None = None
        self.last: int | None = None

    def add(
        self,
        time: int,
        event: Event,
        *,
        rank: int | None = None,
        attempt: int | None = None,
        count: int = 1,
        node: str | None = None,
    ) -> None:
        """Add an event of `count` records."""
        row = _Row(time, rank, attempt, event, count, node)
        if self.shift is None:
            self._early.append(row)
        else:
            self._write(row)

    def date(self, shift: int) -> None:
        """Say when the events so far happened: `shift` later than they were given."""
        self.shift = shift
        early, self._early = self._early, []
        for row in early:
            row.time += shift
            self._write(row)

    def identify(self, marks: Sequence[Marks]) -> Sequence[str]:
        """Say who recorded the events, now that the log is over: `marks` are its attempts'.

        Returns the attempts that more of the log may still tell to be others.
        """
        attempts = {self.attempt_id(number): number for number in range(len(marks))}
        self.envelopes, loose = identified(self.run, self.envelopes, attempts, marks)
        return loose

    def move(self, by: int) -> None:
        """Move all that was dated."""
        self.envelopes = [
            replace(one, wall=one.wall + by, monotonic=one.monotonic + by) for one in self.envelopes
        ]
        self.first = None if self.first is None else self.first + by
        self.last = None if self.last is None else self.last + by

    def attempt_id(self, number: int) -> str:
        """Return what stands for an attempt while the log is read, by its number."""
        return digest(self.run, self._scope, number, digits=_ATTEMPT_DIGITS)

    def _write(self, row: _Row) -> None:
        time = min(max(row.time, 0), _LATEST)
        self.first = time if self.first is None else min(self.first, time)
        self.last = time if self.last is None else max(self.last, time)
        self.envelopes.append(
            Envelope(
                producer="",
                anchor=0,
                first_sequence=0,
                last_sequence=row.count - 1,
                run=self.run,
                attempt=None if row.attempt is None else self.attempt_id(row.attempt),
                rank=row.rank,
                node=row.node,
                wall=time,
                monotonic=time,
                event=row.event,
            )
        )
