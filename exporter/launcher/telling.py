"""Writes what is known about a launcher's ranks into the spools of their run."""

import time
from collections import deque

from headway.events import Event
from headway.exporter.launcher.ranks import RankProcess, Ranks
from headway.exporter.node.witness import Witness

_MOST = 10_000
"""Events that are kept until a rank shows of which run they are."""
_SECOND = 1_000_000_000
CREDIBLE = 60 * _SECOND
"""How far, in ns, the time in a launcher's line may lie before the moment it was read."""


class Telling:
    """Tells events of one command; times are monotonic ns."""

    def __init__(self, witness: Witness, ranks: Ranks) -> None:
        self._witness = witness
        self._ranks = ranks
        self._waiting: deque[tuple[int, Event, int | None]] = deque(maxlen=_MOST)

    def event(self, event: Event, at: int, rank: int | None = None) -> None:
        """Record an event of the launcher, about a rank where one is named."""
        process = None if rank is None else self._ranks.by_rank(rank)
        process = process or self._ranks.newest()
        if process is None:
            self._waiting.append((at, event, rank))
        else:
            self._witness.tell(event, process.producer, rank, process.attempt, at)

    def of(self, process: RankProcess, event: Event, at: int) -> None:
        """Record an event of one process."""
        self._witness.tell(event, process.producer, process.rank, process.attempt, at)

    def waiting(self) -> None:
        """Record what waited for the first rank."""
        while self._waiting:
            at, event, rank = self._waiting.popleft()
            self.event(event, at, rank)

    def close(self) -> None:
        """Close the spools."""
        self._witness.close()


def monotonic_of(wall: int | None, at: int, credible: int | None = CREDIBLE) -> int:
    """Return a time of the wall clock on the monotonic one; `at` where that cannot be right.

    `credible` is how far from `at` it may lie, in ns; `None` allows any time before.
    """
    if wall is None:
        return at
    found = wall - (time.time_ns() - time.monotonic_ns())
    if found < 0 or found > at + _SECOND or (credible is not None and at - found > credible):
        return at
    return found
