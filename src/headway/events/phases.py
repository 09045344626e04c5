"""What a rank is doing right now, and that it is alive."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headway.events.declaration import NANOSECONDS, Described, Event

PHASES = (
    "startup",
    "import",
    "rendezvous",
    "model",
    "warmup",
    "checkpoint_load",
    "step",
    "data_wait",
    "checkpoint_save",
    "evaluation",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseBegan(Event):
    """One rank entered a phase; a phase that never ends names the culprit of a hang."""

    name: ClassVar[str] = "phase.began"
    phase: Annotated[str, Described("Name of the phase; `custom:` names are the user's.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEnded(Event):
    """One rank left a phase; the phase began `duration` before this event."""

    name: ClassVar[str] = "phase.ended"
    phase: Annotated[str, Described("Name of the phase.")]
    duration: Annotated[int, Described("Time spent in it.", NANOSECONDS)]
    error: Annotated[str | None, Described("Exception that ended it early.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Event):
    """A rank was alive at this time."""

    name: ClassVar[str] = "heartbeat"
    open_phases: Annotated[tuple[str, ...], Described("Phases it was in, the innermost last.")] = ()
    last_step: Annotated[int | None, Described("Last completed step.", "steps")] = None
