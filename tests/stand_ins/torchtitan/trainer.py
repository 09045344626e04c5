"""The calls of torchtitan's Trainer, in their order."""

from pathlib import Path
from types import SimpleNamespace

import torch


class _Checkpointer:
    """Writes the metadata of a save when the next one comes, as a background write would."""

    def __init__(self, trainer, folder):
        self.trainer, self.folder = trainer, folder
        self.unfinished = None

    def load(self, step=-1):
        found = [
            int(path.parent.name.partition("-")[2]) for path in self.folder.glob("*/.metadata")
        ]
        self.trainer.step = max(found, default=0)
        return bool(found)

    def _should_save(self, curr_step, last_step=False):
        return last_step or curr_step % 5 == 0

    def _create_checkpoint_id(self, step, folder=""):
        return str(self.folder / f"step-{step}")

    def save(self, curr_step, last_step=False):
        if not self._should_save(curr_step, last_step):
            return False
        self.close()
        self.unfinished = Path(self._create_checkpoint_id(curr_step))
        self.unfinished.mkdir(exist_ok=True)
        return True

    def close(self):
        if self.unfinished is not None:
            (self.unfinished / ".metadata").touch()


class Trainer:
    """Trains nothing for 20 steps of two micro-batches."""

    def __init__(self, folder, fail_at):
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        self.config = SimpleNamespace(training=SimpleNamespace(steps=20))
        self.checkpointer = _Checkpointer(self, folder)
        self.validator = SimpleNamespace(validate=lambda model_parts, step: None)
        self.step, self.fail_at = 0, fail_at

    def batch_generator(self, data_iterable):
        yield from data_iterable

    def train_step(self, data_iterator):
        if self.step == self.fail_at:
            raise ValueError("no such batch")
        next(data_iterator)
        next(data_iterator)

    def train(self):
        self.checkpointer.load(step=-1)
        data_iterator = self.batch_generator(range(1000))
        while self.step < self.config.training.steps:
            self.step += 1
            self.train_step(data_iterator)
            self.checkpointer.save(self.step, last_step=self.step == self.config.training.steps)
            if self.step % 10 == 0:
                self.validator.validate([], self.step)

    def close(self):
        self.checkpointer.close()
