"""What recording costs the thread that trains, beside others in the same run; see README.md.

Each side runs in a process of its own. Costs are CPU time of the calling thread in blocks of
1,000 steps, without the loop around them; a busy machine only adds to them.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.recording.cost import of_import

SIDES = "benchmarks.recording"
PEERS = {
    "ml-goodput-measurement": ("goodput_side", 20_000),
    "nv-one-logger": ("one_logger_side", 10_000),
    "telemetry": ("telemetry_side", 50_000),
}
"""Module of each other side and the steps it takes: one of them slows down with every step."""
FLAT = 1.25
"""The last steps may cost this many times what the first cost."""

Costs = Mapping[str, Any]


class Bar(NamedTuple):
    """One figure and what it has to reach."""

    what: str
    value: float
    bar: float
    unit: str
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the bar is reached."""
        return self.value >= self.bar if self.at_least else self.value <= self.bar


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench recorder", description=__doc__)
    parser.add_argument("steps", nargs="?", type=int, default=1_000_000, metavar="STEPS")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    load = os.getloadavg()
    headway = _child("headway_side", options.steps)
    others = {name: _child(module, steps) for name, (module, steps) in PEERS.items()}
    training = _child("training_side")
    imported = of_import("headway.exporter")
    bars = list(_bars(headway, others, training, imported))
    found = {
        "headway": headway,
        "peers": others,
        "training": training,
        "import": imported,
        "bars": [{**bar._asdict(), "met": bar.met} for bar in bars],
        "load_before": load,
        "load_after": os.getloadavg(),
    }
    print(json.dumps(found) if options.json else "\n".join(_table(bars, others)))


def _bars(
    headway: Costs, others: Mapping[str, Costs], training: Costs, imported: Costs
) -> Iterator[Bar]:
    step, both = headway["step"], headway["step_and_batches"]
    yield Bar("step", step["p50"] / 1e3, 1.0, "us")
    yield Bar("step and batches", both["p50"] / 1e3, 1.5, "us")
    flatness = step["last_blocks"] / step["first_blocks"]
    yield Bar(f"step {step['steps']} against the first", flatness, FLAT, "x")
    goodput = others["ml-goodput-measurement"]["step"]["p50"] / step["p50"]
    yield Bar("below ml-goodput-measurement, step", goodput, 15, "x", at_least=True)
    logger = others["nv-one-logger"]["step"]["p50"] / both["p50"]
    yield Bar("below nv-one-logger, step and batches", logger, 40, "x", at_least=True)
    yield Bar("CPU added to a training step", training["added_cpu_us"], 10, "us")
    yield Bar("wall time of a step, p99.9", training["wall_us_p99_9"], 100, "us")
    yield Bar("import, CPU", imported["cpu_ms"], 60, "ms")
    yield Bar("import, memory", imported["memory_mb"], 12, "MB")


def _child(module: str, *arguments: object) -> Any:
    """Run one side and return what it prints."""
    command = [sys.executable, "-m", f"{SIDES}.{module}", *map(str, arguments)]
    print("measuring:", module, *arguments, file=sys.stderr)
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr}")
    return json.loads(ended.stdout)


def _table(bars: list[Bar], others: Mapping[str, Costs]) -> Iterator[str]:
    line = "{:<42} {:>12} {:>12} {:>4}"
    yield line.format("what", "measured", "bar", "met")
    for bar in bars:
        limit = f"{'>=' if bar.at_least else '<='} {bar.bar:g} {bar.unit}"
        measured = f"{bar.value:.3g} {bar.unit}"
        yield line.format(bar.what, measured, limit, "yes" if bar.met else "no")
    for name, costs in others.items():
        for what, cost in costs.items():
            yield line.format(f"{name}, {what}", f"{cost['p50'] / 1e3:.3g} us", "", "")


if __name__ == "__main__":
    main()
