"""A program that saves a real FSDP state, trains on while it is written, and compares the file.

Run by `tests/exporter/test_training_saved_states.py` with two ranks. The writing process is halted
before it has written anything and goes on after the training has changed every parameter in place.
"""

import json
import os
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

from headway.exporter.recording.recorder import Recorder
from headway.exporter.training import checkpoints as checkpoints_module
from headway.exporter.training.blocking_writer import BlockingWriter
from headway.exporter.training.checkpoints import Checkpoints, Writer, name
from headway.exporter.training.injector import FaultInjector
from headway.exporter.training.replica import Replica
from headway.exporter.training.writer import BackgroundWriter

TRIES = 20
"""Saves to make until a writing process was halted in time; one is nearly always enough."""


def copied(state: Any, path: str = "") -> dict[str, Any]:
    """Return the values of this rank's part of a state by their path, apart from it."""
    if isinstance(state, DTensor):
        state = state.to_local()
    if isinstance(state, torch.Tensor):
        return {path: state.detach().numpy().copy()}
    if isinstance(state, dict):
        return {
            key: value
            for name, part in state.items()
            for key, value in copied(part, f"{path}/{name}").items()
        }
    if isinstance(state, list | tuple):
        return copied(dict(enumerate(state)), path)
    return {path: state}


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Return whether two copies hold the same bits on every rank."""
    here = first.keys() == second.keys() and all(
        (first[key] == second[key]).all()
        if hasattr(first[key], "all")
        else first[key] == second[key]
        for key in first
    )
    verdict = torch.tensor(int(here))
    dist.all_reduce(verdict, dist.ReduceOp.MIN)
    return bool(verdict)


class Training:
    """One rank of a small training, whose steps are taken one after the other."""

    def __init__(self, folder: Path, writer: Writer) -> None:
        """Build it and be ready to save."""
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.replica = Replica(
            mesh=init_device_mesh("cpu", (world_size,)),
            device=torch.device("cpu"),
            rank=rank,
            world_size=world_size,
            global_batch=8,
            seed=3,
        )
        injector = FaultInjector(
            (), rank=rank, memory=folder, announce=print, wait_for_stop=lambda seconds: True
        )
        self.folder = folder
        self.checkpoints = Checkpoints(
            Recorder(), folder, writer=writer, rank=rank, faults=injector
        )
        self.checkpoints.start()
        self.checkpoints.warm_up()

    def steps(self, count: int) -> None:
        """Take steps, which change parameters and optimizer in place."""
        for batch in islice(self.replica.loader, count):
            self.replica.step(batch, wants_stop=False)

    def outcome(self, step: int, before: dict[str, Any]) -> dict[str, bool]:
        """Compare what was written with the state at the save and with the state now."""
        after = copied(self.replica.state())
        self.checkpoints.finish()
        loaded = self.checkpoints.load(self.replica.state)
        assert loaded.step == step
        written = copied(loaded.state)
        self.checkpoints.close()
        return {
            "as at the save": same(written, before),
            "as it is now": same(written, after),
            "changed": not same(before, after),
        }


def blocking(folder: Path) -> dict[str, bool]:
    """Save while the training waits."""
    training = Training(folder, BlockingWriter())
    training.steps(2)
    before = copied(training.replica.state())
    training.checkpoints.save(2, training.replica.state)
    training.steps(3)
    return training.outcome(2, before)


def background(folder: Path) -> dict[str, bool]:
    """Save beside the training, which goes on before a byte is written."""
    writer = BackgroundWriter(dist.get_rank())
    training = Training(folder, writer)
    training.steps(2)
    for number in range(2, 2 + TRIES):
        before = copied(training.replica.state())
        training.checkpoints.save(number, training.replica.state)
        resume = halt(writer)
        part = folder / name(number) / f"__{dist.get_rank()}_0.distcp"
        in_time = torch.tensor(int(not part.exists() or part.stat().st_size == 0))
        dist.all_reduce(in_time, dist.ReduceOp.MIN)
        if in_time:
            training.steps(3)
            resume()
            return training.outcome(number, before)
        resume()
        training.checkpoints.finish()
        training.steps(1)
    raise AssertionError(f"none of {TRIES} writing processes could be halted in time")


def halt(writer: BackgroundWriter) -> Callable[[], None]:
    """Halt the writing process and its children; return what lets them go on."""
    parent = psutil.Process(writer._queue.persistent_caller.process.pid)
    parent.suspend()
    processes = [parent, *parent.children(recursive=True)]
    for process in processes:
        process.suspend()

    def resume() -> None:
        for process in processes:
            process.resume()

    return resume


def aliased(folder: Path) -> dict[str, bool]:
    """Save beside the training without a copy, as NVRx does by itself on a CPU."""
    with mock.patch.object(checkpoints_module, "stage", lambda state: state):
        return background(folder)


def main(folder: Path) -> None:
    """Run each way of saving and print what became of it."""
    dist.init_process_group("gloo")
    answers = {way.__name__: way(folder / way.__name__) for way in (blocking, background, aliased)}
    if dist.get_rank() == 0:
        print(json.dumps(answers), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ["HEADWAY_RECORDER_ENABLED"] = "0"
    main(Path(sys.argv[1]))
