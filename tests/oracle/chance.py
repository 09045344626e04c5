"""Seeded chance for made-up runs: choices, times on one run's grid, features left out."""

import random
from typing import TypeVar

from oracle.scenario import SECOND

_T = TypeVar("_T")


class Chance:
    """Draws everything that one random run consists of."""

    def __init__(self, seed: int, without: frozenset[str]) -> None:
        self.rng = random.Random(seed)  # noqa: S311
        self.without = without
        self.grid = self.rng.choice((SECOND, SECOND, SECOND // 4, 1))

    def has(self, feature: str) -> bool:
        return feature not in self.without

    def chance(self, probability: float, *features: str) -> bool:
        return self.rng.random() < probability and all(map(self.has, features))

    def pick(self, *choices: _T) -> _T:
        return self.rng.choice(choices)

    def time(self, low: float, high: float) -> int:
        """Return a duration between two numbers of seconds, on this run's grid."""
        found = self.rng.randint(round(low * SECOND), round(high * SECOND))
        return found // self.grid * self.grid

    def delay(self) -> int:
        """Return a duration that is often zero, mostly short, and now and then very long."""
        kind = self.rng.random()
        if kind < 0.25:
            return 0
        if kind < 0.8:
            return self.time(0, 20)
        return self.time(20, 400 if kind < 0.98 else 4000)
