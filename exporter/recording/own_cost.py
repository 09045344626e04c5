"""What the recorder itself takes of a step, measured once a minute on a step of the training.

The code of a step is not touched: for one step its handle becomes one that looks at the clock
before and after. Only a step that nobody else observes is measured.
"""

import time
from typing import TYPE_CHECKING, Protocol

from headway.events import Event, RecorderCost
from headway.exporter.recording.complaints import harmless
from headway.exporter.recording.observers import ObservedStepTimer
from headway.exporter.recording.step_timer import StepTimer

if TYPE_CHECKING:
    from types import TracebackType

INTERVAL = 60_000_000_000
"""Time in ns between two measurements."""
_now = time.monotonic_ns


class Recording(Protocol):
    """The recorder, as far as its cost concerns it."""

    def emit(self, event: Event, monotonic: int | None = None) -> None:
        """Write an event."""

    def suppressed(self, failure: Exception) -> None:
        """Count what would have been raised into the training."""


class OwnCost:
    """Makes one step of a minute a measured one, and records what it took."""

    def __init__(self, recorder: Recording, timer: StepTimer) -> None:
        """Prepare; the first measurement is due an interval after the first look."""
        self._recorder = recorder
        self._timer = timer
        self._next: int | None = None
        self.entering = 0

    def suppressed(self, failure: Exception) -> None:
        """Count what would have been raised into the training."""
        self._recorder.suppressed(failure)

    def look(self, now: int) -> None:
        """Measure the next step if that is due at a monotonic time; called with every event."""
        if self._next is None:
            self._next = now + INTERVAL
        elif now >= self._next and type(self._timer) is StepTimer and not self._timer.start:
            self._next = now + INTERVAL
            self._timer.__class__ = MeasuredStepTimer

    @harmless
    def tell(self, leaving: int) -> None:
        """Record a measured step, which took `leaving` ns at its end; the next is not measured."""
        if not isinstance(self._timer, ObservedStepTimer):  # somebody may observe since then
            self._timer.__class__ = StepTimer
        self._recorder.emit(RecorderCost(step=self.entering + leaving))


class MeasuredStepTimer(StepTimer):
    """A step timer that measures itself for one step."""

    __slots__ = ()

    def __enter__(self) -> "StepTimer":
        """Start the step."""
        began = _now()
        StepTimer.__enter__(self)
        self.unusual.own_cost.entering = _now() - began
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        """End the step and tell what both took."""
        began = _now()
        StepTimer.__exit__(self, kind, error, traceback)
        self.unusual.own_cost.tell(_now() - began)
