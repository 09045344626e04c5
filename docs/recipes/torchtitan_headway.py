"""torchtitan, recorded: start this file where you would start `-m torchtitan.train`.

    torchrun ... docs/recipes/torchtitan_headway.py --module llama3 --config llama3_8b

Written for torchtitan 0.3. `HEADWAY_RUN` names the run.
"""

import functools
import time
from pathlib import Path

import torch
from torchtitan import train
from torchtitan.trainer import Trainer

from headway.events import (
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointScheduled,
    RunConfigured,
    RunEnded,
)
from headway.exporter import Recorder

recorder = Recorder()
pending: dict[int, tuple[Path, int]] = {}  # step of a save: its folder, and when training went on


def tell_finished_saves() -> None:
    """Record the saves whose metadata, which is written last, is there by now."""
    for step, (folder, scheduled) in list(pending.items()):
        if any((folder / name).exists() for name in (".metadata", "model.safetensors.index.json")):
            del pending[step]
            background = time.monotonic_ns() - scheduled
            event = CheckpointFinalized(checkpoint=folder.name, step=step, background=background)
            recorder.record(event)


def recorded_batches(self, data_iterable):
    """Record the wait for each micro-batch."""
    batches = original_batches(self, data_iterable)
    while True:
        with recorder.phase("data_wait"):
            batch = next(batches)  # raises torchtitan's own exception at the end of the data
        yield batch


def recorded_step(self, data_iterator):
    """Record one optimizer step; `self.step` is already its number."""
    tell_finished_saves()
    with recorder.step(self.step):
        original_step(self, data_iterator)


def recorded_training(self):
    """Record what is loaded, saved and evaluated, and the end."""
    checkpointer = self.checkpointer
    load, save = checkpointer.load, checkpointer.save

    @functools.wraps(load)
    def recorded_load(*arguments, **options):
        with recorder.phase("checkpoint_load"):
            loaded = load(*arguments, **options)
        checkpoint = f"step-{self.step}" if self.step else None
        if checkpoint is not None:
            recorder.record(CheckpointLoaded(checkpoint=checkpoint, step=self.step))
        recorder.resumed(completed=self.step, checkpoint=checkpoint)
        return loaded

    @functools.wraps(save)
    def recorded_save(curr_step, last_step=False):
        if not checkpointer._should_save(curr_step, last_step):
            return save(curr_step, last_step=last_step)
        began = time.monotonic_ns()
        with recorder.phase("checkpoint_save"):
            saved = save(curr_step, last_step=last_step)
        now, folder = time.monotonic_ns(), Path(checkpointer._create_checkpoint_id(curr_step))
        pending[curr_step] = (folder, now)
        recorder.record(
            CheckpointScheduled(checkpoint=folder.name, step=curr_step, blocking=now - began)
        )
        tell_finished_saves()
        return saved

    checkpointer.load, checkpointer.save = recorded_load, recorded_save
    validator = getattr(self, "validator", None)
    if validator is not None:
        validate = validator.validate

        @functools.wraps(validate)
        def recorded_validation(*arguments, **options):
            with recorder.phase("evaluation"):
                return validate(*arguments, **options)

        validator.validate = recorded_validation
    if torch.distributed.get_rank() == 0:
        recorder.record(
            RunConfigured(
                target_step=self.config.training.steps,
                world_size=torch.distributed.get_world_size(),
            )
        )
    original_training(self)


def recorded_close(self):
    """Wait for the last save, as torchtitan does, and record the end."""
    original_close(self)
    tell_finished_saves()
    if self.step >= self.config.training.steps and torch.distributed.get_rank() == 0:
        recorder.record(RunEnded(reason="completed"))


original_batches, Trainer.batch_generator = Trainer.batch_generator, recorded_batches
original_step, Trainer.train_step = Trainer.train_step, recorded_step
original_training, Trainer.train = Trainer.train, recorded_training
original_close, Trainer.close = Trainer.close, recorded_close

if __name__ == "__main__":
    train.main()
