"""The longest interval of each phase, kept while an attempt's events are read.

One interval per phase is kept, so that reading on costs what is new. A phase that an exception
ended, or nothing, tells how long it was endured and not how long it takes: it does not count.
"""

from typing import NamedTuple

import numpy as np

from headway.ledger.steps import StepRows, Times

HEARTBEAT = "heartbeat"
"""From the end of one step of a rank to the end of its next."""
FIRST_HEARTBEAT = "first_heartbeat"
"""From a rank's begin in the attempt to the end of its first step."""
REGROUPING = "regrouping"
"""From when a rank was ready to restart in its process to when all ranks were."""


class Longest(NamedTuple):
    """The longest interval of a phase in ns, the rank it was seen on, and its begin."""

    duration: int
    rank: int
    start: int


class LongestPhases:
    """The longest interval of each phase of one attempt."""

    def __init__(self) -> None:
        """Start with none."""
        self.found: dict[str, Longest] = {}
        self._beats: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._regrouping: dict[int, int] = {}

    def began(self, rank: int, time: int) -> None:
        """Take in that a rank began the attempt, from where its first heartbeat counts."""
        self._beats.setdefault(rank, time)

    def phase(self, name: str, rank: int, start: int, end: int) -> None:
        """Take in a phase that ended by itself."""
        known, new = self.found.get(name), Longest(end - start, rank, start)
        # of equals the earliest, so that it does not matter in which order they came
        if known is None or (new.duration, -start, -rank) > (
            known.duration,
            -known.start,
            -known.rank,
        ):
            self.found[name] = new

    def steps(self, rank: int, rows: StepRows, *, first: bool) -> None:
        """Take in steps that follow those before; `first` if a rank has none before."""
        took = rows.end - rows.start
        if not rows.detail:
            took = took - rows.data_wait  # lies at the head of a summary's steps
            if rows.longest is not None:
                took[rows.longest[0]] = rows.longest[1]
        self._most("step", rank, rows.end - took, took)
        if rows.detail:
            self._most("data_wait", rank, rows.start - rows.data_wait, rows.data_wait)
        last = self._beats.get(rank)
        if rows.number[0] > self._numbers.get(rank, int(rows.number[0])) + 1:
            last = None  # records between are lost or expired, and steps were done in that time
        self._numbers[rank] = int(rows.number[-1])
        if last is not None and int(rows.end[0]) > last:
            self.phase(FIRST_HEARTBEAT if first else HEARTBEAT, rank, last, int(rows.end[0]))
        if len(rows.end) > 1:
            self._most(HEARTBEAT, rank, rows.end[:-1], np.diff(rows.end))
        self._beats[rank] = max(int(rows.end[-1]), self._beats.get(rank, 0))

    def regrouping(self, rank: int, time: int, *, ended: bool) -> None:
        """Take in that a rank began or ended to wait for the others before a restart."""
        if not ended:
            self._regrouping[rank] = time
        elif rank in self._regrouping:
            self.phase(REGROUPING, rank, self._regrouping.pop(rank), time)

    def _most(self, name: str, rank: int, start: Times, duration: Times) -> None:
        row = int(duration.argmax())
        if duration[row] > 0:
            begin = int(start[row])
            self.phase(name, rank, begin, begin + int(duration[row]))
