"""Trains on this machine's GPUs and reads them through NVML: run `scripts/gpu_check [--json]`.

One rank per GPU trains with FSDP over NCCL, meets one exception, restarts in its process and saves
asynchronously; the ledger of what it recorded is then held against what must have happened.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from headway.events import GpuPresent, GpuSample, RankDevice
from headway.exporter.spooling.reader import SpoolReader, spools
from run_report import report_on

STEPS, EVERY = 60, 10
_TRAINING = 150.0
_SAMPLING = 30.0
"""Seconds after which a part is given up."""


class CheckError(Exception):
    """Something that must hold on a machine with GPUs does not."""


def main() -> int:
    """Check part after part; return the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/gpu_check", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("torch sees no GPU here: nothing was checked")
        return 0
    found: dict[str, Any] = {
        "gpus": [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())],
        "torch": str(torch.__version__),
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
    }
    parts: dict[str, Callable[[Path], dict[str, Any]]] = {"nvml": _nvml, "training": _training}
    failed = 0
    for name, check in parts.items():
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as folder:
                found[name] = {"ok": True, **check(Path(folder))}
        except (CheckError, subprocess.TimeoutExpired) as error:
            found[name] = {"ok": False, "why": str(error)}
            failed += 1
        found[name]["seconds"] = round(time.monotonic() - began, 1)
        if not options.json:
            print(f"{name}: {json.dumps(found[name])}", flush=True)
    if options.json:
        print(json.dumps(found))
    return 1 if failed else 0


def _nvml(_: Path) -> dict[str, Any]:
    """Let the agent's sampler read the GPUs."""
    from headway.exporter.gpus.sampler import GpuSampler

    events: list[Any] = []

    class Sink:
        def node_event(self, event: Any, *, monotonic: int | None = None) -> None:
            events.append(event)

    sampler = GpuSampler(Sink(), interval=1.0, deadline=10.0)
    deadline = time.monotonic() + _SAMPLING
    count = torch.cuda.device_count()
    try:
        while _num(events, GpuSample) < count and time.monotonic() < deadline:
            sampler.poll()
            time.sleep(0.1)
    finally:
        sampler.close()
    if _num(events, GpuPresent) < count or _num(events, GpuSample) < count:
        raise CheckError(f"NVML told of too little: {[event.name for event in events]}")
    sample = next(event for event in events if isinstance(event, GpuSample))
    return {"temperature": sample.temperature, "power": sample.power}


def _num(events: list[Any], kind: type) -> int:
    return len({event.device for event in events if isinstance(event, kind)})


def _training(folder: Path) -> dict[str, Any]:
    """Train over NCCL with one exception and asynchronous checkpoints."""
    ranks = torch.cuda.device_count()
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    program = ["-m", "headway.exporter.training.loop", "--directory", str(folder / "run")]
    options = ["--steps", str(STEPS), "--checkpoint-every", str(EVERY), "--save", "async"]
    fault = ["--fault", "exception", "--fault-at", "step", "--fault-rank", "0"]
    ended = subprocess.run(
        [sys.executable, *launcher, *program, *options, *fault],
        env={**os.environ, "HEADWAY_SPOOL": str(folder / "spool")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TRAINING,
    )
    if ended.returncode:
        raise CheckError(f"the training ended with {ended.returncode}: {ended.stdout[-2000:]}")
    envelopes = list(_envelopes(folder / "spool"))
    told = report_on(envelopes)
    devices = {item.event.device for item in envelopes if isinstance(item.event, RankDevice)}
    saved = [item for item in told["checkpoints"] if item["state"] in ("claimed", "verified")]
    expected = {
        "state": (told["state"], "completed"),
        "steps": (told["steps"]["surviving"], STEPS),
        "layers": ([item["layer"] for item in told["incidents"]], ["in_process"]),
        "causes": ([item["cause"] for item in told["incidents"]], ["exception"]),
        "checkpoints": ({item["step"] for item in saved}, set(range(EVERY, STEPS + 1, EVERY))),
        "GPUs that ranks told": (len(devices), ranks),
    }
    wrong = {name: was for name, (was, wanted) in expected.items() if was != wanted}
    if wrong:
        raise CheckError(f"the ledger differs: {wrong}")
    (incident,) = told["incidents"]
    return {
        "rollback_steps": incident["rollback_steps"],
        "recovered_s": (incident["recovered"] - incident["opened"]) / 1e9,
        "checkpoint_efficiency": told["checkpoint_efficiency"],
    }


def _envelopes(folder: Path) -> Iterator[Any]:
    for spooled in spools(folder):
        yield from SpoolReader(spooled).read(limit=10**7).envelopes


if __name__ == "__main__":
    sys.exit(main())
