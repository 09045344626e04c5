"""Completed steps of one rank, many lines in one record.

Lines that follow each other without a pause become one summary; a save, a pause or 250 lines
end it, so that a later cut at a checkpoint falls between two records.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.events import StepsSummary
from headway.importing.stamps import SECOND

MOST_LINES = 250
PAUSE = SECOND
"""Time between two lines' steps that shows as a gap of its own."""
LONGEST = 30 * 86_400 * SECOND
"""Time that the steps of one line, or a phase, can take, in ns."""


@dataclass(slots=True)
class Block:
    """Consecutive steps; times are ns."""

    first: int
    last: int
    start: int
    end: int
    own: int | None
    longest: int | None
    longest_step: int | None
    loss: float | None
    samples: int | None
    lines: int = 1

    def takes(self, first: int, start: int) -> bool:
        """Whether steps from `first` on, that begin at `start`, go on where this ends."""
        return (
            first == self.last + 1
            and self.lines < MOST_LINES
            and -PAUSE <= start - self.end <= PAUSE
        )

    def extend(
        self,
        last: int,
        end: int,
        own: int | None,
        loss: float | None,
        samples: int | None,
    ) -> None:
        """Take the steps of one more line."""
        if last == self.last + 1 and self.longest is not None and own is not None:
            if own > self.longest:
                self.longest, self.longest_step = own, last
        else:
            self.longest = self.longest_step = None
        self.own = None if own is None or self.own is None else self.own + own
        self.last = last
        self.end = max(self.end, end)
        self.loss = loss
        self.samples = samples
        self.lines += 1

    def extend_run(
        self, steps: Sequence[int], end: int, own: Sequence[int], loss: float, samples: int
    ) -> None:
        """Take the steps of lines that follow each other, each of which took its `own` ns."""
        if steps[-1] - self.last != len(steps):
            self.longest = self.longest_step = None
        elif self.longest is not None and (most := max(own)) > self.longest:
            self.longest, self.longest_step = most, steps[own.index(most)]
        self.own = None if self.own is None else self.own + sum(own)
        self.last = steps[-1]
        self.end = max(self.end, end)
        self.loss = loss
        self.samples = samples
        self.lines += len(steps)

    def event(self) -> StepsSummary:
        """Return the summary."""
        return StepsSummary(
            first_step=self.first,
            num_steps=self.last - self.first + 1,
            duration=self.end - self.start,
            step_time=None if self.own is None else min(self.own, self.end - self.start),
            longest=self.longest if self.last > self.first else None,
            longest_step=self.longest_step if self.last > self.first else None,
            loss=self.loss,
            samples=self.samples,
        )
