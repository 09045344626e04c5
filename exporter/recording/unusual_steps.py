"""Steps that are not as most are: the first, one out of order, one cut short, odd values.

What is normal stays in `headway.exporter.recording.step_timer` and calls nothing here.
"""

import math
from typing import TYPE_CHECKING

from headway.events import PhaseBegan, PhaseEnded
from headway.exporter.recording import failures
from headway.exporter.recording.complaints import harmless
from headway.exporter.recording.observers import ObservedStepTimer, Observers
from headway.exporter.recording.own_cost import OwnCost
from headway.exporter.recording.plain_values import named, plain_int, plain_real, qualified
from headway.exporter.recording.step_timer import LARGEST_SAMPLES, NO_NUMBER, StepTimer
from headway.step_blocks import UNKNOWN_SAMPLES

if TYPE_CHECKING:
    from headway.exporter.recording.recorder import Recorder

LARGEST_STEP = 2**32 - 1


class UnusualSteps:
    """Judges and records the unusual steps of a recorder."""

    def __init__(self, recorder: "Recorder") -> None:
        """Make the timer of all steps, and one for those that are not recorded."""
        self._recorder = recorder
        self.timer = StepTimer(self)
        self._idle = StepTimer(self)
        self.own_cost = OwnCost(recorder, self.timer)

    @property
    def observers(self) -> Observers:
        """Who is told of steps; asked for by the timers that `observe` made."""
        return self._recorder.observers

    def observe(self) -> None:
        """Let the timers tell the recorder's observers of every step, recorded or not."""
        # Their type is changed and not the code of a step, which would cost everybody.
        self.timer.__class__ = self._idle.__class__ = ObservedStepTimer

    def suppressed(self, failure: Exception) -> None:
        """Count what would have been raised into the training."""
        self._recorder.suppressed(failure)

    def begin(self, number: object) -> StepTimer:
        """Return the handle for a step that is the first, does not follow, or makes no sense."""
        timer = self._idle
        try:
            plain = self._judged(number)
            if plain is not None:
                timer = self.timer
                timer.number = plain
        except Exception as failure:  # the boundary that protects the training
            self.suppressed(failure)
        timer.loss = timer.samples = None
        return timer

    @harmless
    def cut_short(self, start: int, end: int, error: BaseException) -> None:
        """Record that an exception left a step."""
        timer = self.timer
        failures.note_left(error, end, "step", timer.number)
        self._recorder.end_wait_at(start)
        timer.number -= 1
        self._recorder.emit(PhaseBegan(phase="step"), start)
        ended = PhaseEnded(phase="step", duration=end - start, error=qualified(type(error)))
        self._recorder.emit(ended, end)

    def plain_loss(self, loss: object, step: int) -> float:
        """Return a loss as a finite float, else NaN; a tensor is refused, not read."""
        try:
            number = plain_real(loss)
            if number is not None and math.isfinite(number):
                return number
            if number is None:
                self._recorder.misuse(
                    "loss_type",
                    f"loss of step {step} is {named(loss)}, not a float; give `loss.item()` where "
                    "the training reads it anyway",
                )
            else:
                self._recorder.misuse("loss", f"loss of step {step} is {number}")
        except Exception as failure:  # the boundary that protects the training
            self.suppressed(failure)
        return math.nan

    def plain_samples(self, samples: object) -> int:
        """Return a count of samples as an int, unknown for anything else."""
        try:
            number = plain_int(samples)
            if number is not None and number <= LARGEST_SAMPLES:
                return number
            detail = f"samples must be a whole number, got {named(samples)}"
            self._recorder.misuse("samples", detail)
        except Exception as failure:  # the boundary that protects the training
            self.suppressed(failure)
        return UNKNOWN_SAMPLES

    def _judged(self, number: object) -> int | None:
        """Return a step's number as Python's own; `None` where the step cannot be recorded."""
        timer, misuse = self.timer, self._recorder.misuse
        if timer.writer is None:
            return None
        plain = plain_int(number)
        if plain is None or plain > LARGEST_STEP:
            misuse("step", f"a step needs a whole number, got {named(number)}")
            return None
        if timer.start:
            misuse("nested_step", f"step {plain} began inside step {timer.number}")
            timer.start = 0
        expected = timer.number + 1
        if timer.number != NO_NUMBER and plain != expected:
            detail = f"step {plain} follows where step {expected} was expected"
            misuse("step_order", f"{detail}; call `resumed` after loading a checkpoint")
        if not plain:
            misuse("step_zero", "steps count from 1: step n makes n completed steps")
        return plain
