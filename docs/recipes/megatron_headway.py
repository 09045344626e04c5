"""Megatron-LM, recorded: put this file before the program that you start.

    torchrun ... docs/recipes/megatron_headway.py pretrain_gpt.py --num-layers 24 ...

Start it in Megatron's own folder. It replaces functions of `megatron.training.training`, which
its training loop looks up by name; written for Megatron-LM of 2025 and 2026 (core 0.12 and later).
`HEADWAY_RUN` names the run.
"""

import functools
import runpy
import sys
import time
from pathlib import Path

import torch
from megatron.training import get_args, training

from headway.events import (
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointScheduled,
    RunConfigured,
    RunEnded,
)
from headway.exporter import Recorder

recorder = Recorder()
completed = 0
pending: dict[int, int] = {}  # iteration of a save: when training went on


def name(iteration: int) -> str:
    """Return the name of the folder in which Megatron keeps a checkpoint."""
    return f"iter_{iteration:07d}"


def tell_finished_saves() -> None:
    """Record the saves that Megatron's tracker file, which is written last, tells of."""
    if not pending:
        return
    try:
        tracker = Path(get_args().save) / "latest_checkpointed_iteration.txt"
        newest = int(tracker.read_text())
    except (OSError, ValueError):  # not there yet, or `release`
        return
    for iteration in [iteration for iteration in pending if iteration <= newest]:
        background = time.monotonic_ns() - pending.pop(iteration)
        recorder.record(
            CheckpointFinalized(checkpoint=name(iteration), step=iteration, background=background)
        )


def in_phase(phase, function):
    """Return a function whose time is recorded as a phase."""

    @functools.wraps(function)
    def recorded(*arguments, **options):
        with recorder.phase(phase):
            return function(*arguments, **options)

    return recorded


def recorded_load(*arguments, **options):
    """Record what was loaded; the first value that comes back is its iteration."""
    loaded = original_load(*arguments, **options)
    iteration = loaded[0]
    if iteration:
        recorder.record(CheckpointLoaded(checkpoint=name(iteration), step=iteration))
    return loaded


def recorded_train(*arguments, **options):
    """Record from where the training goes on and where it ends."""
    global completed
    args = get_args()
    completed = args.iteration
    first_rank = torch.distributed.get_rank() == 0
    if first_rank:
        recorder.record(
            RunConfigured(
                target_step=args.train_iters,
                checkpoint_interval=args.save_interval,
                world_size=torch.distributed.get_world_size(),
                parallelism={
                    "tensor": args.tensor_model_parallel_size,
                    "pipeline": args.pipeline_model_parallel_size,
                },
            )
        )
    recorder.resumed(completed=completed, checkpoint=name(completed) if completed else None)
    result = original_train(*arguments, **options)
    tell_finished_saves()
    if first_rank and args.train_iters and completed >= args.train_iters:
        recorder.record(RunEnded(reason="completed"))
    return result


def recorded_step(*arguments, **options):
    """Record one iteration."""
    global completed
    tell_finished_saves()
    with recorder.step(completed + 1):
        result = original_step(*arguments, **options)
    completed += 1
    return result


def recorded_save(iteration, *arguments, **options):
    """Record a save, which may go on in the background."""
    began = time.monotonic_ns()
    with recorder.phase("checkpoint_save"):
        result = original_save(iteration, *arguments, **options)
    now = pending[iteration] = time.monotonic_ns()
    recorder.record(
        CheckpointScheduled(checkpoint=name(iteration), step=iteration, blocking=now - began)
    )
    tell_finished_saves()
    return result


original_load = in_phase("checkpoint_load", training.load_checkpoint)
training.load_checkpoint = recorded_load
original_train, training.train = training.train, recorded_train
original_step, training.train_step = training.train_step, recorded_step
original_save, training.save_checkpoint = training.save_checkpoint, recorded_save
training.evaluate_and_print_results = in_phase("evaluation", training.evaluate_and_print_results)

if __name__ == "__main__":
    _, program, *_ = sys.argv
    sys.argv = sys.argv[1:]
    runpy.run_path(program, run_name="__main__")
