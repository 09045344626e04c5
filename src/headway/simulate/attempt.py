"""One attempt of a simulated run while it lasts, and what may strike it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from headway.simulate.plan import Strike, Trouble
from headway.simulate.true_account import Account, Weight


class Due(NamedTuple):
    """The next trouble of an attempt: when at the earliest, and the strike it came from."""

    time: int
    trouble: Trouble
    rank: int | None
    strike: Strike | None

    @property
    def announced(self) -> bool:
        """Whether the group is told, so that it ends in order."""
        return self.trouble.symptom == "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Struck:
    """A trouble that struck: when, and which phase or step it cut short.

    `category` is what that phase or step was until then.
    """

    time: int
    trouble: Trouble
    category: str
    rank: int | None = None
    phase: str | None = None
    step: int | None = None
    strike: Strike | None = None


class _Stretch(NamedTuple):
    start: int
    end: int
    category: str
    weight: Weight
    watched: bool


@dataclass(slots=True)
class Attempt:
    """An attempt: `base` are the steps in the state it trains from, `steps` those it completed.

    `present` are the ranks that recorded something, `exits` the times at which ranks ended.
    """

    identity: str
    layer: str
    begin: int
    base: int = 0
    steps: int = 0
    due: Due | None = None
    present: set[int] = field(default_factory=lambda: {0})
    exits: dict[int, int] = field(default_factory=dict)
    opened: list[tuple[int, int, str]] = field(default_factory=list)
    """Begin, end and name of what rank 0 was in."""
    _stretches: list[_Stretch] = field(default_factory=list)

    def spend(
        self, start: int, end: int, category: str, weight: Weight, *, watched: bool = False
    ) -> None:
        """Note time outside steps; its category holds once the attempt completed a step."""
        if end > start:
            self._stretches.append(_Stretch(start, end, category, weight, watched))

    def book(self, account: Account) -> None:
        """Give the noted time to the account.

        A failed start is a restart whole, but for the stall that a watchdog measured.
        """
        for stretch in self._stretches:
            holds = self.steps or stretch.watched
            category = stretch.category if holds else "restart"
            account.add(category, stretch.end - stretch.start, stretch.weight)
        self._stretches.clear()

    @property
    def survivors(self) -> list[int]:
        """Ranks that have not ended."""
        return sorted(self.present - self.exits.keys())
