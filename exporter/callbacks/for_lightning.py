"""Records a training that Lightning's Trainer drives.

    trainer = Trainer(..., callbacks=[HeadwayCallback("llama-8b")])

Lightning has no hook at the end of a save, so the callback stands around `Trainer.save_checkpoint`.
The package is installed under two names, `lightning.pytorch` and `pytorch_lightning`, whose
classes differ: the one that the program has imported counts.
"""

import contextlib
import functools
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

from headway.events import (
    CheckpointFailed,
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointScheduled,
    RunConfigured,
    RunEnded,
)
from headway.exporter.recording.recorder import Recorder
from headway.exporter.recording.step_timer import StepTimer

_NAMES = ("lightning.pytorch", "pytorch_lightning")
_lightning: Any = import_module(next((name for name in _NAMES if name in sys.modules), _NAMES[0]))


class _Write(NamedTuple):
    """A file that AsyncCheckpointIO still writes; the future gives its end and what went wrong."""

    checkpoint: str
    step: int
    scheduled: int
    future: Future[tuple[int, BaseException | None]]


class HeadwayCallback(_lightning.Callback):  # type: ignore[misc]  # chosen above
    """Records steps, waits for data, validation, checkpoints and resumes of one rank.

    A batch after which no optimizer stepped (accumulated gradients) belongs to the step that
    follows; several optimizers in one batch are one step.
    """

    def __init__(self, run: str | None = None, *, recorder: Recorder | None = None) -> None:
        """Record the run named `run`, or go on with a `recorder` that the program opened."""
        self._recorder = recorder
        self._run = run
        self._completed: int | None = None
        self._optimizer_steps = 0
        self._step: StepTimer | None = None
        self._phase = contextlib.ExitStack()
        self._writes: list[_Write] = []

    # What a checkpoint keeps

    def state_dict(self) -> dict[str, Any]:
        """Return the number of completed steps, for the checkpoint."""
        return {"completed": self._completed}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the number of completed steps from a checkpoint."""
        self._completed = state_dict["completed"]

    # Hooks in the order in which Lightning calls them

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Open the recorder; what follows up to the first batch is the load of a checkpoint."""
        if stage != "fit":
            return
        if self._recorder is None:
            self._recorder = Recorder(self._run, checkpoints=Path(trainer.default_root_dir))
        trainer.save_checkpoint = self._recorded(trainer, trainer.save_checkpoint)
        if trainer.ckpt_path:
            self._phase.enter_context(self._recorder.phase("checkpoint_load"))

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        """End the load of a checkpoint."""
        self._phase.close()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Record what is trained and from which state."""
        self._phase.close()
        recorder = self._recorder
        if recorder is None:
            return
        self._optimizer_steps = trainer.global_step
        if self._completed is None:  # no checkpoint, or one from before this callback was used
            self._completed = trainer.global_step
        if trainer.is_global_zero:
            recorder.record(_configuration(trainer))
        checkpoint = Path(trainer.ckpt_path).name if trainer.ckpt_path else None
        if checkpoint is not None:
            recorder.record(CheckpointLoaded(checkpoint=checkpoint, step=self._completed))
        recorder.resumed(completed=self._completed, checkpoint=checkpoint)
        recorder.batch_awaited()

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        """Start a step, unless this batch continues one."""
        recorder = self._recorder
        if recorder is None or self._completed is None:
            return
        recorder.batch_arrived()
        self._tell_written(recorder)
        if self._step is None:
            self._step = recorder.step(self._completed + 1)
            self._step.__enter__()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """End the step if an optimizer stepped; validation, a save or the next batch follows."""
        if self._recorder is None or self._completed is None:
            return
        if self._step is not None and trainer.global_step > self._optimizer_steps:
            self._optimizer_steps = trainer.global_step
            self._completed += 1
            self._step.loss = _loss(outputs)
            self._step.__exit__(None, None, None)
            self._step = None
        self._recorder.batch_awaited()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Enter a validation of the training."""
        if self._recorder is not None and self._completed is not None:  # else the sanity check
            self._recorder.batch_arrived()
            self._phase.enter_context(self._recorder.phase("evaluation"))

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Leave the validation."""
        self._phase.close()
        if self._recorder is not None and self._completed is not None:
            self._recorder.batch_awaited()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Record what ended the attempt."""
        if self._recorder is not None:
            self._recorder.end_attempt(exception)
            self._recorder = None

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Record the end of the run: with its last step, or stopped before."""
        recorder = self._recorder
        if recorder is None or stage != "fit":
            return
        recorder.batch_arrived()
        wait([write.future for write in self._writes])  # Lightning would wait for them next
        self._tell_written(recorder)
        if trainer.is_global_zero:
            recorder.record(RunEnded(reason="stopped" if trainer.should_stop else "completed"))
        recorder.end_attempt()

    # Checkpoints

    def _recorded(self, trainer: Any, save: Callable[..., None]) -> Callable[..., None]:
        """Return `Trainer.save_checkpoint` with a record of what it saved."""

        @functools.wraps(save)
        def save_checkpoint(filepath: Any, *arguments: Any, **options: Any) -> None:
            recorder, step = self._recorder, self._completed
            if recorder is None or step is None:
                save(filepath, *arguments, **options)
                return
            checkpoint, began = Path(filepath).name, time.monotonic_ns()
            recorder.batch_arrived()
            try:
                with recorder.phase("checkpoint_save"):
                    save(filepath, *arguments, **options)
            except Exception as error:
                failed = CheckpointFailed(checkpoint=checkpoint, step=step, reason=str(error))
                recorder.record(failed)
                raise
            now = time.monotonic_ns()
            recorder.record(
                CheckpointScheduled(checkpoint=checkpoint, step=step, blocking=now - began)
            )
            finished = _after_writing(trainer.strategy.checkpoint_io)
            if finished is None:
                recorder.record(CheckpointFinalized(checkpoint=checkpoint, step=step))
            else:
                self._writes.append(_Write(checkpoint, step, now, finished))
            recorder.batch_awaited()

        return save_checkpoint

    def _tell_written(self, recorder: Recorder) -> None:
        """Record the files that AsyncCheckpointIO has written since the last call."""
        while self._writes and self._writes[0].future.done():
            checkpoint, step, scheduled, future = self._writes.pop(0)
            end, error = future.result()
            if error is None:
                written = CheckpointFinalized(
                    checkpoint=checkpoint, step=step, background=end - scheduled
                )
                recorder.emit(written, end)
            else:
                failed = CheckpointFailed(checkpoint=checkpoint, step=step, reason=str(error))
                recorder.emit(failed, end)


def _after_writing(checkpoint_io: Any) -> Future[tuple[int, BaseException | None]] | None:
    """Return what will be known once the file handed over last is written; None if it is.

    AsyncCheckpointIO writes one file after the other in one thread, so what is handed to that
    thread now comes after the file.
    """
    executor = getattr(checkpoint_io, "_executor", None)
    if executor is None:
        return None
    written: Future[tuple[int, BaseException | None]] = executor.submit(
        lambda: (time.monotonic_ns(), checkpoint_io._error)
    )
    return written


def _configuration(trainer: Any) -> RunConfigured:
    steps = trainer.estimated_stepping_batches
    package = _lightning.__name__.partition(".")[0]
    return RunConfigured(
        target_step=None if steps == float("inf") else int(steps),
        world_size=trainer.world_size,
        versions={package: metadata.version(package.replace("_", "-"))},
    )


def _loss(outputs: Any) -> float | None:
    """Return the loss of the last batch, if that needs no wait for a GPU."""
    loss: Any = outputs.get("loss") if isinstance(outputs, dict) else outputs
    if loss is None or loss.device.type != "cpu" or loss.numel() != 1:
        return None
    return float(loss)
