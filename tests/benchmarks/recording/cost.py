"""CPU time of the calling thread per step, in blocks of steps, and the cost of an import."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

BLOCK = 1000
IMPORTS = 5
_IMPORT = """
import json, resource, time

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

memory, cpu = resident(), time.process_time()
import {module}
print(json.dumps([(time.process_time() - cpu) * 1e3, (resident() - memory) / 1e6]))
"""


class Cost(NamedTuple):
    """CPU nanoseconds per step over blocks of 1,000 steps, the empty loop taken off."""

    p1: float
    p50: float
    p99: float
    first_blocks: float
    """Median of the first tenth of the blocks."""
    last_blocks: float
    """Median of the last tenth of the blocks."""
    steps: int


def per_step(run: Callable[[int], None], steps: int) -> Cost:
    """Measure a function that takes 1,000 steps from the number it is given on."""
    blocks = max(steps // BLOCK, 2)
    costs = []
    for block in range(blocks):
        began = time.thread_time_ns()
        for _ in range(BLOCK):
            pass
        empty = time.thread_time_ns()
        run(block * BLOCK + 1)
        costs.append((time.thread_time_ns() - empty - (empty - began)) / BLOCK)
    ranked = statistics.quantiles(costs, n=100)
    tenth = max(blocks // 10, 1)
    return Cost(
        p1=ranked[0],
        p50=ranked[49],
        p99=ranked[98],
        first_blocks=statistics.median(costs[:tenth]),
        last_blocks=statistics.median(costs[-tenth:]),
        steps=blocks * BLOCK,
    )


def of_import(module: str) -> dict[str, float]:
    """Return what importing a module costs a fresh interpreter: the cheapest of a few times."""
    command = [sys.executable, "-c", _IMPORT.format(module=module)]
    found = [json.loads(subprocess.check_output(command)) for _ in range(IMPORTS)]
    return dict(zip(("cpu_ms", "memory_mb"), min(found), strict=True))
