"""Completed optimizer steps, and the state from which training went on."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headway.events.declaration import NANOSECONDS, Described, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Event):
    """Consecutive completed steps of one rank in full detail; the time is the last step's end.

    One record of the producer per step, so an envelope of n records carries n steps.
    """

    name: ClassVar[str] = "steps"
    first_step: Annotated[int, Described("Number of the first step.", "steps")]
    version: Annotated[int, Described("Layout of `packed`, see `headway.step_blocks`.")]
    packed: Annotated[
        bytes,
        Described("Start, duration, data wait, loss and samples of each step, little-endian."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsSummary(Event):
    """Consecutive completed steps as one line; the time is the last step's end."""

    name: ClassVar[str] = "steps.summary"
    first_step: Annotated[int, Described("Number of the first step.", "steps")]
    num_steps: Annotated[int, Described("Number of steps.", "steps")]
    duration: Annotated[
        int, Described("From the start of the first step to the end of the last.", NANOSECONDS)
    ]
    step_time: Annotated[int | None, Described("Sum of the steps' own durations.", NANOSECONDS)] = (
        None
    )
    data_wait: Annotated[int | None, Described("Sum of the waits for data.", NANOSECONDS)] = None
    longest: Annotated[int | None, Described("Duration of the longest step.", NANOSECONDS)] = None
    longest_step: Annotated[int | None, Described("Number of the longest step.", "steps")] = None
    loss: Annotated[float | None, Described("Loss of the last step.")] = None
    samples: Annotated[int | None, Described("Samples consumed so far.", "samples")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Event):
    """Training continues from a restored state; the next step is `completed` + 1."""

    name: ClassVar[str] = "resumed"
    completed: Annotated[int, Described("Optimizer steps in the restored state.", "steps")]
    checkpoint: Annotated[str | None, Described("Checkpoint it came from.")] = None
    requested: Annotated[str | None, Described("Checkpoint that was asked for.")] = None
