"""A training on two gloo ranks whose second rank breaks on one bad sample, as often as it is let.

    torchrun --nproc-per-node 2 looping_training.py FOLDER

It saves every second of its eight steps. Before the fourth, rank 1 waits for a file in the folder:
`break-N` lets the N-th attempt to get there break, `mended` lets training go on.
"""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from headway.events import (
    Allocation,
    CheckpointFinalized,
    CheckpointScheduled,
    RunConfigured,
    RunEnded,
)
from headway.exporter import Recorder

FOLDER = Path(sys.argv[1])
SAVED = FOLDER / "checkpoint.pt"
STEPS, EVERY, BAD = 8, 2, 4
PATIENCE = 1200.0


def meet() -> int:
    """Form the group and return this rank.

    By a file of each attempt: in torchrun's own store the addresses of the attempt before are
    left, and gloo would call them.
    """
    attempt = f"{os.environ['MASTER_PORT']}-{os.environ['TORCHELASTIC_RESTART_COUNT']}"
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    meeting = f"file://{FOLDER}/meeting-{attempt}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size)
    return rank


def break_or_go_on() -> None:
    """Wait for whoever watches to say how this attempt goes on."""
    number = sum(1 for _ in FOLDER.glob("broke-*")) + 1
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if (FOLDER / "mended").exists():
            return
        if (FOLDER / f"break-{number}").exists():
            (FOLDER / f"broke-{number}").touch()
            raise ValueError("bad sample 17")
        time.sleep(0.05)
    raise TimeoutError("nobody says how to go on")


def train(recorder: Recorder) -> None:
    """Train from what was saved last to the end."""
    with recorder.phase("startup"):
        rank = meet()
        weights = torch.zeros(4)
    recorder.record(
        RunConfigured(
            target_step=STEPS,
            checkpoint_interval=EVERY,
            labels={"team": "llm", "cluster": "east", "owner": "ada"},
        )
    )
    if rank == 0:
        recorder.record(Allocation(gpus_held=2))
    done = 0
    if SAVED.exists():
        with recorder.phase("checkpoint_load"):
            done, weights = torch.load(SAVED, weights_only=True)
    recorder.resumed(completed=done, checkpoint=f"step-{done}" if done else None)
    for step in range(done + 1, STEPS + 1):
        with recorder.step(step):
            gradient = torch.full((4,), float(step))
            if rank == 1 and step == BAD:
                break_or_go_on()
            dist.all_reduce(gradient)
            weights += gradient
        if step % EVERY == 0:
            with recorder.phase("checkpoint_save"):
                save(recorder, rank, step, weights)
    if rank == 0:
        recorder.record(RunEnded(reason="completed"))


def save(recorder: Recorder, rank: int, step: int, weights: torch.Tensor) -> None:
    """Save on rank 0, whole or not at all, before any rank goes on."""
    if rank == 0:
        recorder.record(CheckpointScheduled(checkpoint=f"step-{step}", step=step))
        torch.save((step, weights), SAVED.with_suffix(".new"))
        os.replace(SAVED.with_suffix(".new"), SAVED)
        recorder.record(CheckpointFinalized(checkpoint=f"step-{step}", step=step))
    dist.barrier()


def main() -> None:
    """Run one rank."""
    recorder = Recorder(run="llama")
    try:
        train(recorder)
        recorder.end_attempt()
    except Exception as error:
        recorder.end_attempt(error)
        raise
    finally:
        recorder.close()


if __name__ == "__main__":
    main()
