"""Who else is told of phases and steps as they begin and end, in the training's own thread.

A step calls nobody while nobody observes: only then do the recorder's timers become ones that do.
"""

from typing import TYPE_CHECKING, Protocol

from headway.exporter.recording.step_timer import StepTimer

if TYPE_CHECKING:
    from types import TracebackType


class Observer(Protocol):
    """Is told of every phase, and of every step as a phase named `step`."""

    def began(self, phase: str) -> None:
        """A phase is about to begin."""

    def ended(self, phase: str, completed: bool) -> None:
        """A phase has ended; `completed` unless an exception ended it."""


class Observers:
    """The observers of one recorder; what they raise is counted, not raised into the training."""

    def __init__(self, recorder: "Failing") -> None:
        """Start with none."""
        self._recorder = recorder
        self._all: tuple[Observer, ...] = ()

    def add(self, observer: Observer) -> None:
        """Tell one more from now on."""
        self._all = (*self._all, observer)

    def began(self, phase: str) -> None:
        """Tell all that a phase begins."""
        for observer in self._all:
            try:
                observer.began(phase)
            except Exception as failure:  # the boundary that protects the training
                self._recorder.suppressed(failure)

    def ended(self, phase: str, completed: bool) -> None:
        """Tell all that a phase has ended."""
        for observer in self._all:
            try:
                observer.ended(phase, completed)
            except Exception as failure:  # the boundary that protects the training
                self._recorder.suppressed(failure)


class Failing(Protocol):
    """Counts what would have been raised into the training."""

    def suppressed(self, failure: Exception) -> None:
        """Count it."""


class ObservedStepTimer(StepTimer):
    """A step timer that tells the observers; what they do is no part of the step's time."""

    __slots__ = ()

    def __enter__(self) -> "StepTimer":
        """Tell them and start the step."""
        self.unusual.observers.began("step")
        return super().__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        """End the step and tell them."""
        super().__exit__(kind, error, traceback)
        self.unusual.observers.ended("step", error is None)
