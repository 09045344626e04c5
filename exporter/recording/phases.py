"""The phases of one rank: what is open, and the `with` block that opens and closes one."""

import time
from types import TracebackType
from typing import TYPE_CHECKING

from headway.events import PHASES, PhaseBegan, PhaseEnded
from headway.exporter.recording import failures
from headway.exporter.recording.complaints import harmless
from headway.exporter.recording.plain_values import named, qualified
from headway.exporter.spooling.layout import OpenPhase

if TYPE_CHECKING:
    from headway.exporter.recording.recorder import Recorder

_now = time.monotonic_ns


class Phases:
    """The open phases of a recorder, the innermost last."""

    def __init__(self, recorder: "Recorder") -> None:
        """Start with none."""
        self._recorder = recorder
        self._open: list[OpenPhase] = []

    def suppressed(self, failure: Exception) -> None:
        """Count what would have been raised into the training."""
        self._recorder.suppressed(failure)

    def names(self) -> tuple[str, ...]:
        """Return the names of the open phases, the innermost last."""
        return tuple(opened.phase for opened in self._open)

    def clear(self) -> None:
        """Forget phases that were never left: another attempt begins."""
        self._open.clear()
        self._show()

    @harmless
    def enter(self, phase: "Phase") -> None:
        """Record the entry of a phase."""
        name = phase.name
        if not isinstance(name, str):
            self._recorder.misuse("phase", f"a phase needs a name, got {named(name)}")
            return
        if name not in PHASES:
            from headway.metrics import CUSTOM  # keeps its declarations out of the import

            if not name.startswith(CUSTOM):
                known = f"{', '.join(PHASES)}, {CUSTOM}NAME"
                self._recorder.misuse("phase", f"unknown phase {name!r:.200}; known: {known}")
                name = CUSTOM + name
        if any(name == opened.phase for opened in self._open):
            detail = f"phase {name!r:.200} is open already; the outer one counts"
            self._recorder.misuse("nested_phase", detail)
            return
        self._recorder.end_wait()
        self._recorder.observers.began(name)
        phase.opened = OpenPhase(name, _now())
        self._open.append(phase.opened)
        self._recorder.emit(PhaseBegan(phase=name), phase.opened.began)
        self._show()

    @harmless
    def leave(self, phase: "Phase", error: BaseException | None) -> None:
        """Record the end of a phase."""
        opened, end = phase.opened, _now()
        if opened is None:
            return
        phase.opened = None
        if opened in self._open:
            self._open.remove(opened)
        words = None
        if error is not None:
            words = qualified(type(error))
            failures.note_left(error, end, opened.phase, None)
        self._recorder.end_wait()
        ended = PhaseEnded(phase=opened.phase, duration=end - opened.began, error=words)
        self._recorder.emit(ended, end)
        self._show()
        self._recorder.observers.ended(opened.phase, error is None)

    def _show(self) -> None:
        self._recorder.show_phases(list(self._open))


class Phase:
    """One phase as a `with` block."""

    __slots__ = ("_phases", "name", "opened")

    def __init__(self, phases: Phases, name: str) -> None:
        """Prepare it; nothing is recorded yet."""
        self._phases = phases
        self.name = name
        self.opened: OpenPhase | None = None

    def __enter__(self) -> "Phase":
        """Record the entry."""
        self._phases.enter(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Record the end, and the exception that caused it if any."""
        self._phases.leave(self, error)
