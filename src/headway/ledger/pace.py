"""How long a step and the time from one start to the next usually take (rules 16 and 19)."""

from dataclasses import dataclass

import numpy as np

from headway.ledger.steps import Times

SECOND = 10**9
LEAST_LIMIT = 60 * SECOND
"""No step shorter than this is called too long."""
LIMIT_FACTOR = 10
LEAST_GAP = SECOND
"""A gap up to this belongs to the step after it."""
WINDOW = 100
FEWEST = 5


@dataclass(frozen=True, slots=True)
class Pace:
    """Usual duration and period of a step in ns; None if unknown."""

    step: int | None = None
    period: int | None = None

    def is_too_long(self, duration: int) -> bool:
        """Whether a step of this duration in ns counts as stalled; never without a usual step."""
        return self.step is not None and duration > max(LEAST_LIMIT, LIMIT_FACTOR * self.step)

    @property
    def gap(self) -> int:
        """Longest gap that belongs to the step after it."""
        return LEAST_GAP if self.period is None else max(LEAST_GAP, self.period)


class Paces:
    """Usual duration and period before each step of an attempt (rules 16 and 19)."""

    def __init__(self, net: Times, gap: Times, before: Pace) -> None:
        self._net = net
        self._period = net[:-1] + gap[1:]
        self._before = before
        self._cache: dict[int, Pace] = {}

    def at(self, index: int) -> Pace:
        """Return the pace known before the step with this index of the attempt."""
        if index not in self._cache:
            self._cache[index] = self._pace(index, FEWEST)
        return self._cache[index]

    def inherited(self) -> Pace:
        """Return the pace for the next attempt, be it from few steps."""
        return self._pace(len(self._net), 1)

    def _pace(self, index: int, fewest: int) -> Pace:
        steps = self._net[max(1, index - WINDOW) : index]
        # period i lies between the starts of the steps i and i + 1
        periods = self._period[max(1, index - WINDOW - 1) : max(index - 1, 0)]
        return Pace(
            _lower_median(steps) if len(steps) >= fewest else self._before.step,
            _lower_median(periods) if len(periods) >= fewest else self._before.period,
        )


def _lower_median(values: Times) -> int:
    middle = (len(values) - 1) // 2
    return int(np.partition(values, middle)[middle])
