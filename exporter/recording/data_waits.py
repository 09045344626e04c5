"""Waiting for batches: counted for the step that follows, or a phase where none does."""

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headway.events import PhaseBegan, PhaseEnded
from headway.exporter.recording import failures
from headway.exporter.recording.complaints import harmless
from headway.exporter.recording.plain_values import qualified
from headway.exporter.recording.step_timer import StepTimer
from headway.exporter.spooling.layout import Slot

if TYPE_CHECKING:
    from headway.exporter.recording.recorder import Recorder

_now = time.monotonic_ns
_WAIT_START, _WAIT_END = int(Slot.WAIT_START), int(Slot.WAIT_END)


class DataWaits:
    """The waits of a recorder for its loaders; what is not yet a step's lies in its timer."""

    def __init__(self, recorder: "Recorder", timer: StepTimer) -> None:
        """Start with none."""
        self._recorder = recorder
        self._timer = timer
        self._awaited_since = 0

    def suppressed(self, failure: Exception) -> None:
        """Count what would have been raised into the training."""
        self._recorder.suppressed(failure)

    def batches(self, iterable: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches; the wait for each counts as data wait of the next step."""
        timer = self._timer
        began = _now()
        if timer.slots is not None:
            timer.slots[_WAIT_START] = began
        waiting = True
        try:
            for batch in iterable:
                waiting = False
                slots = timer.slots
                if slots is not None:
                    end = _now()
                    slots[_WAIT_END] = end
                    if not timer.start:  # a wait inside a step is part of the step
                        timer.data_wait += end - began
                yield batch
                began = _now()
                slots = timer.slots
                if slots is not None:
                    slots[_WAIT_START] = began
                waiting = True
        except BaseException as error:
            if waiting:
                self._failed(began, error)
            raise
        finally:
            if waiting and timer.slots is not None:
                timer.slots[_WAIT_END] = _now()
        if not timer.start:
            timer.data_wait += _now() - began

    @harmless
    def awaited(self) -> None:
        """Begin to wait for a batch, outside any iterator."""
        slots = self._timer.slots
        if slots is not None:
            slots[_WAIT_START] = self._awaited_since = _now()

    @harmless
    def arrived(self) -> None:
        """End the wait that `awaited` began, if there is one."""
        timer, since = self._timer, self._awaited_since
        if not since or timer.slots is None:
            return
        self._awaited_since = 0
        timer.slots[_WAIT_END] = end = _now()
        if not timer.start:  # a wait inside a step is part of the step
            timer.data_wait += end - since

    def end(self) -> None:
        """Record a wait as a phase where something else than its step follows it."""
        timer = self._timer
        if timer.data_wait and not timer.start and timer.slots is not None:
            self._told(timer.data_wait, timer.slots[_WAIT_END])
            timer.data_wait = 0

    def end_at(self, start: int) -> None:
        """Record the wait before a step that began at `start` and was not completed."""
        if self._timer.data_wait:
            self._told(self._timer.data_wait, start)
            self._timer.data_wait = 0

    @harmless
    def _failed(self, began: int, error: BaseException) -> None:
        end = _now()
        failures.note_left(error, end, "data_wait", None)
        self._told(end - began, end, qualified(type(error)))

    def _told(self, duration: int, end: int, error: str | None = None) -> None:
        self._recorder.emit(PhaseBegan(phase="data_wait"), end - duration)
        ended = PhaseEnded(phase="data_wait", duration=duration, error=error)
        self._recorder.emit(ended, end)
