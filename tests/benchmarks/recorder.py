"""What recording costs the calling thread: run `scripts/bench recorder [STEPS]`.

CPU time per step of blocks of 1,000 steps, without the loop around them, printed as one JSON
object; an import in a fresh interpreter beside it. A busy machine only adds to these figures.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from headway.exporter import Recorder
from headway.exporter.spool_layout import AGENT_MARKER
from headway.settings import RecorderSettings

BLOCK = 1000
_IMPORT = """
import json, resource, time

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

memory, cpu = resident(), time.process_time()
import headway.exporter
print(json.dumps({"cpu_ms": (time.process_time() - cpu) * 1e3, "bytes": resident() - memory}))
"""


def measure(run: Callable[[int], None], blocks: int) -> dict[str, float]:
    """Return CPU per step in ns over blocks of steps, the empty loop taken off."""
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
    return {
        "p1": ranked[0],
        "p50": ranked[49],
        "p99": ranked[98],
        "mean": statistics.fmean(costs),
        "first_tenth": statistics.median(costs[:tenth]),
        "last_tenth": statistics.median(costs[-tenth:]),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench recorder", description=__doc__)
    parser.add_argument("steps", nargs="?", type=int, default=200_000)
    parser.add_argument("--json", action="store_true", help="accepted; it prints nothing else")
    blocks = parser.parse_args().steps // BLOCK
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / AGENT_MARKER).touch()
        for rank, name in enumerate(("step", "step_and_batches")):
            settings = RecorderSettings(spool=Path(folder), run_id="bench")
            recorder = Recorder("bench", rank=rank, settings=settings)
            recorder.resumed(completed=0)
            found[name] = measure(_steps(recorder, with_batches=bool(rank)), blocks)
            recorder.close()
    command = [sys.executable, "-c", _IMPORT]
    imports = [json.loads(subprocess.check_output(command)) for _ in range(5)]
    found["import"] = min(imports, key=lambda figures: figures["cpu_ms"])
    print(json.dumps(found))


def _steps(recorder: Recorder, with_batches: bool) -> Callable[[int], None]:
    def steps(first: int) -> None:
        for number in range(first, first + BLOCK):
            with recorder.step(number):
                pass

    def steps_and_batches(first: int) -> None:
        number = first
        for _ in recorder.batches(range(BLOCK)):
            with recorder.step(number):
                pass
            number += 1

    return steps_and_batches if with_batches else steps


if __name__ == "__main__":
    main()
