"""CPU time and memory of one process, since wall time on a shared machine says little."""

import resource
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

Answer = TypeVar("Answer")

MOST_RUNS = 20
ENOUGH = 8.0
"""CPU seconds after which no further run is made."""


class Cost(NamedTuple):
    """CPU seconds of the cheapest run, and of how many."""

    cpu_s: float
    runs: int


def cheapest(run: Callable[[int], Answer]) -> tuple[Cost, Answer]:
    """Measure a function of the run's number again and again; return also its last answer."""
    costs: list[float] = []
    while True:
        began = time.process_time()
        answer = run(len(costs))
        costs.append(time.process_time() - began)
        if len(costs) == MOST_RUNS or sum(costs) >= ENOUGH:
            return Cost(min(costs), len(costs)), answer


def once(run: Callable[[], Answer]) -> tuple[float, Answer]:
    """Return the CPU seconds and the answer of one run."""
    began = time.process_time()
    answer = run()
    return time.process_time() - began, answer


def resident_mb() -> float:
    """Return the memory this process holds now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def peak_mb() -> float:
    """Return the most memory this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
