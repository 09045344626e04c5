"""How fast a Megatron log of many steps becomes a ledger, and in how much memory; see README.md.

A log of made-up lines is written once and imported by the public command in a process of its own;
its CPU time counts, because the machine may be shared.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BAR_SPEED = 50.0
"""MB/s on one core."""
BAR_MEMORY = 300.0
"""MB."""
_MEGABYTE = 10**6
_SAVE_EVERY = 1000
"""Lines between two saves."""


def main() -> None:
    """Write, import, measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench import", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the log")
    parser.add_argument("--log-interval", type=int, default=1, help="steps between two lines")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "megatron.log"
        steps = write(log, options.megabytes * _MEGABYTE, options.log_interval)
        size = log.stat().st_size
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "headway", "import", "megatron", str(log), "--json"],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": "src"},
        )
        wall = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    (run,) = json.loads(done.stdout)["runs"]
    cpu = used.ru_utime + used.ru_stime
    found = {
        "megabytes": size / _MEGABYTE,
        "steps": steps,
        "log_interval": options.log_interval,
        "steps_found": run["steps"]["highest"],
        "right": run["steps"]["highest"] == steps and run["steps"]["rework"] == 0,
        "cpu_s": cpu,
        "wall_s": wall,
        "megabytes_per_cpu_second": size / _MEGABYTE / cpu,
        "memory_megabytes": used.ru_maxrss * 1024 / _MEGABYTE,
        "bars": {"megabytes_per_cpu_second": BAR_SPEED, "memory_megabytes": BAR_MEMORY},
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "load": os.getloadavg()[0],
    }
    found["met"] = (
        found["megabytes_per_cpu_second"] >= BAR_SPEED
        and found["memory_megabytes"] <= BAR_MEMORY
        and found["right"]
    )
    if options.json:
        print(json.dumps(found, sort_keys=True))
        return
    print(
        f"{found['megabytes']:.0f} MB, {steps:,} steps: {cpu:.1f} s of CPU in {wall:.1f} s, "
        f"{found['megabytes_per_cpu_second']:.0f} MB/s (bar {BAR_SPEED:.0f}), "
        f"{found['memory_megabytes']:.0f} MB of memory (bar {BAR_MEMORY:.0f}), "
        f"{'right' if found['right'] else 'WRONG'}"
    )


def write(log: Path, size: int, interval: int) -> int:
    """Write a log of about so many bytes, a line every `interval` steps; return its last step."""
    second = 1_750_000_000
    step = written = 0
    with log.open("w", encoding="ascii") as file:
        while written < size:
            lines = []
            for _ in range(1000):
                step += interval
                second += 8
                stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(second))
                lines.append(
                    f" [{stamp}] iteration {step:8d}/90000000 | consumed samples: {step * 16:12d} |"
                    f" elapsed time per iteration (ms): {8000 / interval:.1f} | throughput per GPU "
                    "(TFLOP/s/GPU): 134.0 | learning rate: 4.000000E-05 | global batch size:    16 "
                    f"| lm loss: {2 + 100 / step:.6E} | loss scale: 1.0 | grad norm: 3.874 "
                    "| num zeros: 71.0 "
                    "| number of skipped iterations:   0 | number of nan iterations:   0 |\n"
                )
                if step % (_SAVE_EVERY * interval) == 0:
                    second += 4
                    lines.append(
                        f"saving checkpoint at iteration {step:7d} to ckpts/run in torch_dist "
                        f"format\n  successfully saved checkpoint from iteration {step:7d} to "
                        "ckpts/run [ t 1/1, p 1/1 ]\n(min, max) time across ranks (ms):\n    "
                        "save-checkpoint ................................: (3413.14, 3413.14)\n"
                    )
            text = "".join(lines)
            file.write(text)
            written += len(text)
    return step


if __name__ == "__main__":
    main()
