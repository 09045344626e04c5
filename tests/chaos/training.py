"""The real resilient training on gloo, two ranks under torchrun, whose launcher starts it again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from chaos.world import VICTIMS, World
from headway.exporter.spooling.reader import SpoolReader, spools
from training_run import TORCHRUN, environment

_STEPS = 10**6
"""More than it comes to: the launcher is told to stop at the end."""
_PATIENCE = 120.0


def train(world: World, kills: int, chance: Random, folder: Path) -> None:
    """Train and kill one of the three at random moments; then stop the run and drain."""
    program = ("-m", "headway.exporter.training.loop", "--directory", str(folder))
    options = ("--steps", str(_STEPS), "--recovery", "none", "--save", "sync")
    command = [sys.executable, *TORCHRUN, "--max-restarts", "1000", *program, *options]
    with (folder.parent / "training.log").open("wb") as output:
        launcher = subprocess.Popen(
            command, env=environment(world.spool), stdout=output, stderr=output
        )
        try:
            for victim in chance.choices(VICTIMS, k=kills):
                _ranks(world, launcher)
                time.sleep(chance.uniform(0, 2))
                if victim == "collector":
                    world.kill_collector()
                elif victim == "agent":
                    world.kill_agent()
                else:
                    while not _kill(chance.choice(_ranks(world, launcher))):
                        pass
                    world.counts.kills["rank"] += 1
            _ranks(world, launcher)
        finally:
            launcher.terminate()
            launcher.wait(_PATIENCE)
    world.drain()


def _ranks(world: World, launcher: "subprocess.Popen[bytes]") -> list[int]:
    """Return the process ids of the ranks that are alive, at least one."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        found = []
        for folder in spools(world.spool):
            reader = SpoolReader(folder)
            if reader.producer is not None and reader.producer.rank is not None:
                status = reader.status()
                if status.alive and status.process_id is not None:
                    found.append(status.process_id)
        if found:
            return found
        if launcher.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError("no rank is alive; see training.log")


def _kill(process_id: int) -> bool:
    try:
        os.kill(process_id, signal.SIGKILL)
    except ProcessLookupError:
        return False  # the launcher was faster
    return True
