"""Seeded fault schedule and its memory.

The schedule is the published one of the resilient-training benchmarks: the same seed gives the
same steps and ranks at any time and place. A fault at n strikes after step n is completed, once
in the life of a run: what has struck is remembered in files, because a fault may end the process
or the node it strikes. Standard library only.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

FAULT_TYPES = ("exception", "hang", "sigkill")
_FOREVER = 10**6


class InjectedFaultError(RuntimeError):
    """The exception that a fault of type `exception` raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """One fault: it strikes `rank` after `step` is completed."""

    step: int
    rank: int
    type: str


def schedule(
    *,
    seed: int,
    num_faults: int,
    after_step: int,
    max_steps: int,
    world_size: int,
    types: Sequence[str] = ("exception",),
    weights: Sequence[float] | None = None,
) -> tuple[PlannedFault, ...]:
    """Return the faults of a run in the order of their steps.

    Steps are drawn from `after_step` + 1 to `max_steps` without repetition. Rank 0 is never
    struck: it holds the stores, and in the benchmarks its loss ends the run.

    Raises:
        ValueError: numbers that leave no room for the faults, or an unknown type.
    """
    if num_faults == 0:
        return ()
    room = max(max_steps - after_step, 0)
    if not 0 < num_faults <= room:
        raise ValueError(
            f"{num_faults} faults do not fit into steps {after_step + 1} to {max_steps}; "
            f"ask for at most {room}"
        )
    if world_size < 2:
        raise ValueError(
            f"faults need a rank other than 0, but the world size is {world_size}; "
            "start at least 2 ranks or ask for 0 faults"
        )
    if unknown := [name for name in types if name not in FAULT_TYPES]:
        raise ValueError(f"unknown fault type {unknown[0]!r}; known: {', '.join(FAULT_TYPES)}")
    if not types or (weights is not None and len(weights) != len(types)):
        raise ValueError(f"{len(types)} fault types with {len(weights or ())} weights")
    generator = random.Random(seed)  # noqa: S311  # reproducible on purpose
    steps = sorted(generator.sample(range(after_step + 1, max_steps + 1), num_faults))
    return tuple(
        PlannedFault(
            step=step,
            rank=generator.randint(1, world_size - 1),
            type=generator.choices(types, weights)[0],
        )
        for step in steps
    )


class FaultInjector:
    """Strikes one rank with the faults planned for it and remembers those that have struck.

    A fault whose step was passed without it (the rank was down, or resumed beyond it) strikes
    at the next completed step; none is dropped.
    """

    def __init__(self, planned: Sequence[PlannedFault], *, rank: int, memory: Path) -> None:
        """Strike `rank` as planned; `memory` is a folder shared by all processes."""
        self._planned = planned
        self._rank = rank
        self._memory = memory

    def pending(self) -> tuple[PlannedFault, ...]:
        """Return the faults of all ranks that have not struck yet."""
        return tuple(fault for fault in self._planned if not self._mark(fault).exists())

    def strike(self, completed: int, announce: Callable[[PlannedFault], None]) -> None:
        """Strike with the first fault that is due after step `completed`, if there is one."""
        for fault in self._planned:
            if fault.step > completed:
                return
            if fault.rank == self._rank and self._claim(fault):
                announce(fault)
                _strike(fault, completed)

    def _mark(self, fault: PlannedFault) -> Path:
        return self._memory / f"step-{fault.step:06d}-rank-{fault.rank}-{fault.type}"

    def _claim(self, fault: PlannedFault) -> bool:
        mark = self._mark(fault)
        if mark.exists():
            return False
        self._memory.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return False
        os.fsync(descriptor)
        os.close(descriptor)
        return True


def _strike(fault: PlannedFault, completed: int) -> NoReturn:
    if fault.type == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault.type == "hang":
        # One call into C: a loop in Python would still look alive to a progress watchdog.
        time.sleep(_FOREVER)
        raise InjectedFaultError(f"the injected hang ended after {_FOREVER} s")
    raise InjectedFaultError(
        f"injected {fault.type} after step {completed}, planned for step {fault.step}"
    )
