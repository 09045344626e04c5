"""A program that saves, breaks and loads checkpoints in one process and prints what came back.

Run by `tests/exporter/test_training_checkpoints.py`: the writing process imports the main module
again, which must not be pytest's.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import torch
import torch.distributed as dist
from nvidia_resiliency_ext.checkpointing.async_ckpt.core import AsyncRequest

from headway.events import CheckpointStaged, Event
from headway.exporter.recording.recorder import Recorder
from headway.exporter.training.checkpoints import Checkpoints, durable
from headway.exporter.training.injector import FaultInjector
from headway.exporter.training.writer import BackgroundWriter, WriterDiedError
from headway.wire import to_fields


class Listening(Recorder):
    """Keeps the events that it is given."""

    def __init__(self) -> None:
        """Record nothing but to memory."""
        super().__init__()
        self.events: list[list[Any]] = []

    def record(self, event: Event) -> None:
        """Keep the event's name and what identifies it; that a copy was made is told elsewhere."""
        if not isinstance(event, CheckpointStaged):
            self.events.append([event.name, to_fields(event)["checkpoint"]])


def state() -> dict[str, Any]:
    """Return a state that is full of one number."""
    return {"model": {"weights": torch.zeros(1000)}, "consumed": torch.tensor(0)}


class Scenario:
    """One folder of checkpoints, one live state, and what was recorded."""

    def __init__(self, folder: Path) -> None:
        """Start the writing process and wait for it."""
        self.recorder = Listening()
        self.folder = folder
        self.live = state()
        self.writer = BackgroundWriter(0)
        injector = FaultInjector(
            (), rank=0, memory=folder, announce=print, wait_for_stop=lambda seconds: True
        )
        self.checkpoints = Checkpoints(
            self.recorder, folder, writer=self.writer, rank=0, faults=injector
        )
        self.checkpoints.start()
        self.checkpoints.warm_up()

    def save(self, step: int) -> None:
        """Save a live state that is full of `step`."""
        self.live["model"]["weights"].fill_(step)
        self.checkpoints.save(step, lambda: self.live)

    def load(self) -> list[Any] | None:
        """Return name, requested name and the distinct weights of what loads."""
        loaded = self.checkpoints.load(state)
        if loaded.checkpoint is None:
            return None
        weights = loaded.state["model"]["weights"].unique().tolist()
        return [loaded.checkpoint, loaded.requested, weights]

    def damage(self, step: int) -> None:
        """Cut the data of a checkpoint short."""
        for part in (self.folder / f"step-{step:06d}").glob("__0_*"):
            part.write_bytes(part.read_bytes()[:100])

    def close(self) -> list[list[Any]]:
        """End the writing process and return the events."""
        self.checkpoints.close()
        return self.recorder.events


def torn(folder: Path) -> Any:
    """Change the live state while it is being written."""
    scenario = Scenario(folder)
    scenario.save(1)
    scenario.live["model"]["weights"].fill_(99)
    scenario.checkpoints.finish()
    return {"loaded": scenario.load(), "events": scenario.close()}


def damaged(folder: Path) -> Any:
    """Damage the newest, then all checkpoints, then save the newest again."""
    scenario = Scenario(folder)
    for step in (1, 2):
        scenario.save(step)
        scenario.checkpoints.finish()
    scenario.damage(2)
    found = [scenario.load()]
    scenario.damage(1)
    found.append(scenario.load())
    scenario.save(2)
    scenario.checkpoints.finish()
    found.append(scenario.load())
    aside = sorted(path.name.partition(".")[2][:8] for path in folder.glob("step-000002.*"))
    return {"loaded": found, "aside": aside, "events": scenario.close()}


def abandoned(folder: Path) -> Any:
    """Give a save up before it is complete, then go on."""
    scenario = Scenario(folder)
    scenario.save(1)
    scenario.checkpoints.finish()
    scenario.save(2)
    scenario.checkpoints.abandon()
    complete = [path.name for path in durable(folder)]
    scenario.checkpoints.start()
    scenario.save(3)
    scenario.checkpoints.finish()
    return {"durable": complete, "loaded": scenario.load(), "events": scenario.close()}


def killed(folder: Path) -> Any:
    """Kill the writing process while it has something to do."""
    scenario = Scenario(folder)
    queue = scenario.writer._queue
    os.kill(queue.persistent_caller.process.pid, signal.SIGKILL)
    queue.persistent_caller.process.join()
    queue.schedule_async_request(AsyncRequest(time.time, (), []))
    try:
        scenario.checkpoints.finish()
        noticed = None
    except WriterDiedError as error:
        noticed = str(error)
    scenario.checkpoints.abandon()
    scenario.checkpoints.start()
    scenario.save(1)
    scenario.checkpoints.finish()
    return {"noticed": noticed, "loaded": scenario.load(), "events": scenario.close()}


def lost(folder: Path) -> Any:
    """Lose the folder of the checkpoints."""
    scenario = Scenario(folder)
    folder.mkdir(parents=True, exist_ok=True)
    scenario.save(1)
    scenario.checkpoints.finish()
    folder.rename(folder.with_suffix(".moved"))
    folder.write_text("a file stands where the folder should be")
    scenario.save(2)
    scenario.checkpoints.finish()
    return {"events": scenario.close()}


SCENARIOS: tuple[Callable[[Path], Any], ...] = (torn, damaged, abandoned, killed, lost)


def wait(folder: Path) -> None:
    """Print the processes that were started and wait to be killed."""
    scenario = Scenario(folder)
    started = psutil.Process().children(recursive=True)
    print(json.dumps([process.pid for process in started]), flush=True)
    time.sleep(600)
    scenario.close()


def main(folder: Path, task: str) -> None:
    """Run every scenario and print the answers as one JSON object, or `wait`."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    if task == "wait":
        wait(folder)
    answers = {scenario.__name__: scenario(folder / scenario.__name__) for scenario in SCENARIOS}
    dist.destroy_process_group()
    print(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
