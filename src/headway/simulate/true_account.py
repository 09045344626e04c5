"""Adds up where the time of a simulated run goes, without ever asking Headway's ledger.

The words are those of the ledger's categories. Where a definition depends on what can be known
(a killed rank has no time of its own, so the stall begins with the last completed step), the
truth follows the definition. Steps stand on a stack: going back to a checkpoint takes off what
was done after it.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


class Weight(NamedTuple):
    """GPUs held by the run, and those of them that its newest attempt uses."""

    held: int
    world: int


class _Block(NamedTuple):
    last_step: int
    steps: int
    work: int
    weight: Weight


@dataclass(slots=True)
class Account:
    """Adds up the truth while the run goes on."""

    wall: Counter[str] = field(default_factory=Counter)
    gpu: Counter[str] = field(default_factory=Counter)
    executed: int = 0
    highest: int = 0
    _stack: list[_Block] = field(default_factory=list)

    def add(self, category: str, amount: int, weight: Weight) -> None:
        """Give time to a category."""
        active = min(weight.held, weight.world)
        self.wall[category] += amount
        self.gpu[category] += amount * active
        self.gpu["spare"] += amount * (weight.held - active)

    def steps(self, last_step: int, count: int, work: int, weight: Weight) -> None:
        """Give time to steps whose fate is open."""
        self._stack.append(_Block(last_step, count, work, weight))
        self.executed += count
        self.highest = max(self.highest, last_step)

    def go_back(self, step: int) -> None:
        """Discard every step after the one a restored state holds."""
        while self._stack and self._stack[-1].last_step > step:
            block = self._stack.pop()
            self.add("rolled_back", block.work, block.weight)

    def close(self) -> int:
        """Let the steps that are left survive; return how many they are."""
        for block in self._stack:
            self.add("productive", block.work, block.weight)
        return sum(block.steps for block in self._stack)
