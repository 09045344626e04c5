"""The life of a checkpoint: handed over, copied, durable, failed, read back."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headway.events.declaration import NANOSECONDS, Described, Event

TIERS = ("memory", "local", "shared")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointScheduled(Event):
    """A save was handed over; the time is the moment training went on."""

    name: ClassVar[str] = "checkpoint.scheduled"
    checkpoint: Annotated[str, Described("Identity of the checkpoint within the run.")]
    step: Annotated[int, Described("Optimizer steps in the saved state.", "steps")]
    blocking: Annotated[int | None, Described("Time for which training waited.", NANOSECONDS)] = (
        None
    )
    bytes_staged: Annotated[int | None, Described("Bytes copied for the writer.", "bytes")] = None
    queue_depth: Annotated[int | None, Described("Saves not yet finalized.", "checkpoints")] = None
    tier: Annotated[str | None, Described("Where the copy lies.", choices=TIERS)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointStaged(Event):
    """The state is copied, so that training may change it again; the time is the copy's end."""

    name: ClassVar[str] = "checkpoint.staged"
    checkpoint: Annotated[str, Described("Identity of the checkpoint within the run.")]
    step: Annotated[int, Described("Optimizer steps in the saved state.", "steps")]
    duration: Annotated[int | None, Described("Time the copy took.", NANOSECONDS)] = None
    bytes_staged: Annotated[int | None, Described("Bytes copied by this rank.", "bytes")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFinalized(Event):
    """A checkpoint's completion was observed: from now on it is durable (claimed)."""

    name: ClassVar[str] = "checkpoint.finalized"
    checkpoint: Annotated[str, Described("Identity of the checkpoint within the run.")]
    step: Annotated[int, Described("Optimizer steps in the saved state.", "steps")]
    background: Annotated[int | None, Described("From scheduled to finalized.", NANOSECONDS)] = None
    bytes_written: Annotated[int | None, Described("Bytes written by this rank.", "bytes")] = None
    tier: Annotated[str | None, Described("Where the copy lies.", choices=TIERS)] = None
    bytes_total: Annotated[
        int | None, Described("Bytes of the whole checkpoint, those of all ranks.", "bytes")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFailed(Event):
    """A scheduled save did not complete."""

    name: ClassVar[str] = "checkpoint.failed"
    checkpoint: Annotated[str, Described("Identity of the checkpoint within the run.")]
    step: Annotated[int, Described("Optimizer steps in the state to be saved.", "steps")]
    reason: Annotated[str | None, Described("Why it failed.")] = None
    background: Annotated[
        int | None, Described("From scheduled until it was known to have failed.", NANOSECONDS)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLoaded(Event):
    """A checkpoint was read back completely: it is verified."""

    name: ClassVar[str] = "checkpoint.loaded"
    checkpoint: Annotated[str, Described("Identity of the checkpoint within the run.")]
    step: Annotated[int, Described("Optimizer steps in the state.", "steps")]
    duration: Annotated[int | None, Described("Time the load took.", NANOSECONDS)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLoadFailed(Event):
    """A checkpoint could not be read back: from now on it is revoked."""

    name: ClassVar[str] = "checkpoint.load_failed"
    checkpoint: Annotated[str, Described("Identity of the checkpoint within the run.")]
    step: Annotated[int | None, Described("Optimizer steps it was believed to hold.", "steps")] = (
        None
    )
    reason: Annotated[str | None, Described("Why it failed.")] = None
