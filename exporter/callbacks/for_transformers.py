"""Records a training that the Trainer of Hugging Face Transformers drives.

    trainer = Trainer(..., callbacks=[HeadwayCallback("llama-8b")])

The Trainer announces the end of an evaluation or a save, and not its start: it starts where the
step or epoch before it ended, because the Trainer does nothing else in between.
"""

import contextlib
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from transformers import TrainerCallback  # type: ignore[import-not-found, unused-ignore]

from headway.events import (
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointScheduled,
    RunConfigured,
    RunEnded,
)
from headway.exporter.recording.recorder import Recorder


class HeadwayCallback(TrainerCallback):  # type: ignore[misc, unused-ignore]  # untyped
    """Records steps, waits for data, evaluations, checkpoints and resumes of one rank."""

    def __init__(self, run: str | None = None, *, recorder: Recorder | None = None) -> None:
        """Record the run named `run`, or go on with a `recorder` that the program opened."""
        self._recorder = recorder
        self._run = run
        self._step = contextlib.ExitStack()
        self._phase = contextlib.ExitStack()
        self._phase_began = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Record what is trained and from which state."""
        if self._recorder is None:
            self._recorder = Recorder(self._run, checkpoints=Path(args.output_dir))
        recorder = self._recorder
        if state.is_world_process_zero:
            every = args.save_steps if args.save_strategy == "steps" else None
            recorder.record(
                RunConfigured(
                    target_step=state.max_steps,
                    checkpoint_interval=every if isinstance(every, int) else None,
                    world_size=args.world_size,
                    versions={"transformers": metadata.version("transformers")},
                )
            )
        checkpoint = None
        if state.global_step:
            checkpoint = _name(state)
            recorder.record(CheckpointLoaded(checkpoint=checkpoint, step=state.global_step))
        recorder.resumed(completed=state.global_step, checkpoint=checkpoint)
        recorder.batch_awaited()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start an optimizer step; the batches of all its micro-batches are there."""
        if self._recorder is not None:
            self._recorder.batch_arrived()
            self._step.enter_context(self._recorder.step(state.global_step + 1))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """End the step; an evaluation, a save or the next batch follows."""
        self._step.close()
        self._follow(control.should_evaluate, control.should_save)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Expect an evaluation, a save or the next epoch's first batch."""
        self._follow(control.should_evaluate, control.should_save)

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """End an evaluation of the training; a save or the next batch follows."""
        if self._phase_began:
            self._follow(evaluate=False, save=control.should_save)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Record a checkpoint, which the Trainer has written completely."""
        if self._recorder is None:
            return
        blocking = time.monotonic_ns() - self._phase_began if self._phase_began else None
        checkpoint, step = _name(state), state.global_step
        self._follow(evaluate=False, save=False)
        for event in (
            CheckpointScheduled(checkpoint=checkpoint, step=step, blocking=blocking),
            CheckpointFinalized(checkpoint=checkpoint, step=step),
        ):
            self._recorder.record(event)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Record the end of the run: at its last step, or stopped before."""
        if self._recorder is None:
            return
        self._phase.close()
        self._recorder.batch_arrived()
        if state.is_world_process_zero:
            done = state.global_step >= state.max_steps
            self._recorder.record(RunEnded(reason="completed" if done else "stopped"))
        self._recorder.end_attempt()

    def _follow(self, evaluate: bool, save: bool) -> None:
        """Leave the phase that is over and enter the one that follows."""
        self._phase.close()
        self._phase_began = 0
        if self._recorder is None:
            return
        self._recorder.batch_arrived()
        if evaluate or save:
            name = "evaluation" if evaluate else "checkpoint_save"
            self._phase.enter_context(self._recorder.phase(name))
            self._phase_began = time.monotonic_ns()
        else:
            self._recorder.batch_awaited()


def _name(state: Any) -> str:
    """Return the name of the folder in which the Trainer keeps the checkpoint of a state."""
    return f"checkpoint-{state.global_step}"
