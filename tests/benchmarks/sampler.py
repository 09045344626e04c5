"""What watching GPUs costs: `scripts/bench sampler [--seconds N] [--json]`.

The agent's sampler with its real helper process and NVIDIA's real binding reads 8 GPUs of a fake
driver at the default interval, looked at once a second as the agent does. The fake's own work, in
Python, is part of the helper's figure; the time that a real driver takes in the kernel is not.
Then every question hangs, and the longest time that one look took is the delay of the agent.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from gpu_scenario import Scenario
from headway.events import Event, GpuFault, GpuSample
from headway.exporter.gpus.sampler import GpuSampler
from headway.settings import AgentSettings
from headway.wire import json_fields

NUM_GPUS = 8
DEADLINE = 2.0
"""Seconds after which a question counts as hung, in the part that hangs."""
BARS = {"cpu_percent": 0.5, "longest_look_ms": 1e3 * DEADLINE}
"""CPU of one core, of helper and agent together; delay of the agent's other work."""


class Counted:
    """Takes events as the agent's witness does, and sizes them."""

    def __init__(self) -> None:
        self.bytes = 0
        self.samples = 0
        self.faults: list[GpuFault] = []

    def node_event(self, event: Event, *, monotonic: int | None = None) -> None:
        """Count an event by its size as JSON."""
        self.bytes += len(json.dumps({"name": event.name, "fields": json_fields(event)}))
        self.samples += isinstance(event, GpuSample)
        if isinstance(event, GpuFault):
            self.faults.append(event)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench sampler", description=__doc__)
    parser.add_argument("--seconds", type=float, default=90.0, help="time measured; default 90")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(Path(folder) / "gpus.json", NUM_GPUS, tick=1.0)
        found = {**cost(scenario, options.seconds), **delay(scenario)}
    rows = {
        name: {"value": found[name], "bar": bar, "met": found[name] < bar}
        for name, bar in BARS.items()
    }
    if options.json:
        print(json.dumps({"gpus": NUM_GPUS, **found, "bars": rows}))
        return
    for name, row in rows.items():
        met = "yes" if row["met"] else "no"
        print(f"{name:<16} {row['value']:>10.3g}   bar {row['bar']:>8.5g}   met {met}")


def cost(scenario: Scenario, seconds: float) -> dict[str, float]:
    """Return CPU and volume of the sampler over some seconds, after its first reading."""
    settings = AgentSettings()
    counted = Counted()
    sampler = GpuSampler(
        counted,
        interval=settings.gpu_interval,
        deadline=settings.gpu_deadline,
        command=_command(scenario),
    )
    try:
        while counted.samples < NUM_GPUS:
            sampler.poll()
            time.sleep(0.01)
        helper = _helper()
        started = _cpu(helper)
        before, samples, size = started, counted.samples, counted.bytes
        looks = 0.0
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            time.sleep(settings.interval)
            look = time.thread_time()
            sampler.poll()
            looks += time.thread_time() - look
        elapsed = time.monotonic() - began
        used = _cpu(helper) - before
        return {
            "interval_s": settings.gpu_interval,
            "seconds": elapsed,
            "cpu_percent": 100 * (used + looks) / elapsed,
            "helper_cpu_percent": 100 * used / elapsed,
            "agent_cpu_percent": 100 * looks / elapsed,
            "start_cpu_s": started,
            "helper_memory_mb": _memory(helper) / 1e6,
            "samples": counted.samples - samples,
            "event_bytes_per_s": (counted.bytes - size) / elapsed,
        }
    finally:
        sampler.close()


def delay(scenario: Scenario) -> dict[str, float]:
    """Return the longest look while a question hangs, and when the fault was told."""
    counted = Counted()
    sampler = GpuSampler(counted, interval=0.1, deadline=DEADLINE, command=_command(scenario))
    try:
        while counted.samples < 2 * NUM_GPUS:
            sampler.poll()
            time.sleep(0.01)
        for number in range(NUM_GPUS):
            scenario.breaks(number, hang="everything")
        began, longest = time.monotonic(), 0.0
        while not counted.faults and time.monotonic() - began < 10 * DEADLINE:
            look = time.monotonic()
            sampler.poll()
            longest = max(longest, time.monotonic() - look)
            time.sleep(0.01)
        return {
            "hang_deadline_s": DEADLINE,
            "hang_told_after_s": time.monotonic() - began,
            "longest_look_ms": 1e3 * longest,
        }
    finally:
        sampler.close()


def _command(scenario: Scenario) -> list[str]:
    variables = [f"{name}={value}" for name, value in scenario.environment.items()]
    return ["env", *variables, sys.executable, "-m", "headway.exporter.gpus.helper"]


def _helper() -> int:
    """Return the process id of this process's only child; `env` became the helper."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    (child,) = children
    return int(child)


def _cpu(process_id: int) -> float:
    """Return seconds that a process has spent on a CPU."""
    return int(Path(f"/proc/{process_id}/schedstat").read_text().split()[0]) / 1e9


def _memory(process_id: int) -> int:
    """Return bytes of a process that lie in memory."""
    pages = int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
