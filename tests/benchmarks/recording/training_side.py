"""What recording adds to a training that no agent ships, in interleaved blocks; no arguments.

A step is about 200 us of arithmetic. Blocks with and without the recorder alternate, so that what
else the machine does meets both alike; the interval is the mean's over pairs of blocks, at 95 %.
"""

import json
import math
import statistics
import tempfile
import time
from pathlib import Path

from headway.exporter import Recorder
from headway.settings import RecorderSettings

PAIRS = 200
STEPS = 50
"""Steps of one block."""
CALLS = 100_000
_NORMAL = statistics.NormalDist().inv_cdf(0.975)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        settings = RecorderSettings(spool=Path(folder), run_id="bench")
        recorder = Recorder("bench", rank=1, settings=settings)
        recorder.resumed(completed=0)
        number, added = 0, []
        for _ in range(PAIRS):
            began = time.thread_time_ns()
            for _ in range(STEPS):
                _train()
            between = time.thread_time_ns()
            for _ in recorder.batches(range(STEPS)):
                number += 1
                with recorder.step(number):
                    _train()
            plain = between - began
            added.append((time.thread_time_ns() - between - plain) / STEPS / 1e3)
        walls = []
        for _ in range(CALLS):
            number += 1
            began = time.perf_counter_ns()
            with recorder.step(number):
                pass
            walls.append((time.perf_counter_ns() - began) / 1e3)
        recorder.close()
    mean, half = statistics.fmean(added), _NORMAL * statistics.stdev(added) / math.sqrt(PAIRS)
    ranked = statistics.quantiles(walls, n=1000)
    found = {
        "added_cpu_us": mean,
        "added_cpu_us_interval": [mean - half, mean + half],
        "wall_us_p50": ranked[499],
        "wall_us_p99": ranked[989],
        "wall_us_p99_9": ranked[998],
    }
    print(json.dumps(found))


def _train() -> float:
    total = 0.0
    for number in range(1, 3000):
        total += 1.0 / number
    return total


if __name__ == "__main__":
    main()
