"""One figure of two sides, and what makes their difference uncertain.

Two things do. Time without evidence makes a figure a range, and so its difference. And the same
machines and settings would have met other incidents in another such stretch: that is the interval
of chance.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headway.comparison.intervals import Interval, difference_interval

FINDINGS: Mapping[str, str] = {
    "equal": "no difference",
    "distinct": "more than chance explains",
    "chance": "may be chance",
    "either_sign": "may go either way: time without evidence",
    "too_few": "too few to tell it from chance",
    "measured": "as measured",
    "unknown": "unknown on one side",
}
"""What can be said of a difference, by name; `measured` is of what chance has no part in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure of one side, or a difference of two; None is unknown.

    From `low` to `high` time without evidence allows it to be; from `chance_low` to `chance_high`
    chance does, too. `ns` is the time behind a share.
    """

    low: float | None
    high: float | None
    chance_low: float | None = None
    chance_high: float | None = None
    ns: int | None = None

    def minus(self, other: "Estimate") -> "Estimate":
        """Return what this exceeds another by: 5 to 6 exceeds 1 to 3 by 2 to 5."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return Estimate(low=None, high=None)
        below = difference_interval(
            self.low, (self.chance_low, None), other.high, (None, other.chance_high)
        )
        above = difference_interval(
            self.high, (None, self.chance_high), other.low, (other.chance_low, None)
        )
        return Estimate(
            low=self.low - other.high,
            high=self.high - other.low,
            chance_low=below[0],
            chance_high=above[1],
            ns=None if self.ns is None or other.ns is None else self.ns - other.ns,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of two sides; the unit is `ratio`, `ns` or what is counted.

    `higher_is_better` is None where neither is; `finding` is one of `FINDINGS`.
    """

    name: str
    title: str
    unit: str
    higher_is_better: bool | None
    one: Estimate
    other: Estimate
    difference: Estimate
    finding: str


def finding_of(difference: Estimate, *, is_sampled: bool) -> str:
    """Return what can be said of a difference; `is_sampled` says that chance has a part in it."""
    low, high = difference.low, difference.high
    if low is None or high is None:
        return "unknown"
    if low == high == 0:
        return "equal"
    if low <= 0 <= high:
        return "either_sign"
    if not is_sampled:
        return "measured"
    nearest = difference.chance_low if low > 0 else difference.chance_high
    if nearest is None:
        return "too_few"
    return "distinct" if nearest * low > 0 else "chance"


def estimated(value: float | None, chance: Interval) -> Estimate:
    """Return a figure that no missing evidence makes a range."""
    if value is None:
        return Estimate(low=None, high=None)
    return Estimate(low=value, high=value, chance_low=chance[0], chance_high=chance[1])
