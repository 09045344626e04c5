"""What is kept for good of an attempt's steps: the group's time between two checkpoints.

Values only; `headway.ledger.frozen` makes them and reads them again.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stretch:
    """One frozen step, or neighbours that only their sums tell; times in ns.

    `number` is that of the last step, `begin` the end of the step before. `least` and `most` bound
    the work of a single step.
    """

    count: int
    number: int
    begin: int
    start: int
    end: int
    wait: int
    late: int
    late_end: int
    work: int
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Lead:
    """What came before the first step of an attempt; see `GroupSteps`."""

    since: int
    rank: int
    waits: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenSegment:
    """The frozen steps of one attempt between two checkpoints.

    `first_row` steps of the attempt came before, `pieces` own time that is no step's.
    """

    attempt: str
    first_row: int
    stretches: Sequence[Stretch]
    pieces: Sequence[tuple[int, int, str, str | None]] = ()
    lead: Lead | None = None

    @property
    def num_steps(self) -> int:
        """Number of steps."""
        return sum(stretch.count for stretch in self.stretches)

    @property
    def work(self) -> int:
        """Time in the steps themselves, in ns."""
        return sum(stretch.work for stretch in self.stretches)

    @property
    def data_wait(self) -> int:
        """Time of waiting for data, in ns."""
        waits = sum(stretch.wait + stretch.late for stretch in self.stretches)
        return waits + self._owned("data_wait")

    @property
    def other(self) -> int:
        """Time of what lay between the steps, in ns."""
        return sum(end - start for start, end, *_ in self.pieces) - self._owned("data_wait")

    def _owned(self, category: str) -> int:
        return sum(end - start for start, end, name, _ in self.pieces if name == category)
