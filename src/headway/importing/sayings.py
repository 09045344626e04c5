"""What one line of a training's log can say, whichever program printed it: values only.

Steps are counts of completed optimizer steps: a program that counts its first step as 0 is put
right by its own module. Times and durations are ns; `None` is what the line does not say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headway.events import Scalar
from headway.launcher_log.statements import Said


class StepLine(NamedTuple):
    """Progress up to a step.

    `per_step` is the printed duration of one step, averaged over the lines' interval; `elapsed`
    a counter since the start of a bar or a job; `rate_base` the step at which that counter was 0,
    where the line lets one tell; `redrawn` says that the same step is printed again and again;
    `dispatch` that the printed duration is no measure of the work. `printed` is the number in the
    line, `form` its kind, `scope` what the numbers count within, such as an epoch.
    """

    step: int
    printed: int
    form: str
    target: int | None = None
    per_step: int | None = None
    elapsed: int | None = None
    loss: float | None = None
    samples: int | None = None
    skipped: int = 0
    redrawn: bool = False
    dispatch: bool = False
    covers: int | None = None
    scope: tuple[int, int] | None = None
    cumulative: int | None = None


class StepRun(NamedTuple):
    """Plain lines of progress that follow each other directly, in columns of one entry a line.

    Plain are lines with a finite loss and without skipped steps that say nothing else. `texts` are
    the whole lines, `stamps` are of the form `2026-11-29 08:00:00`, or "" for none. `per_step` has
    the shape (n,), int64, ns.
    """

    texts: Sequence[str]
    stamps: Sequence[str]
    steps: Sequence[int]
    target: int
    samples: Sequence[str]
    per_step: npt.NDArray[np.int64]
    losses: Sequence[float]
    form: str

    def line(self, number: int) -> StepLine:
        """Return what one of the lines says by itself."""
        step = self.steps[number]
        return StepLine(
            step=step,
            printed=step,
            form=self.form,
            target=self.target,
            per_step=int(self.per_step[number]),
            loss=self.losses[number],
            samples=int(self.samples[number]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """When what follows in a tuple of sayings happened; `relative` times count from a begin."""

    time: int
    relative: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRun:
    """What follows is of the run of this name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Figures that the program computed itself, by its own formulas."""

    figures: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """A training program starts; `layer` who started it, where the line tells."""

    layer: str | None = None
    restarts: int | None = None
    run_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """A setting of the run."""

    name: str
    value: Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveBegan:
    """A save begins; `background` says that training goes on meanwhile."""

    step: int | None = None
    checkpoint: str | None = None
    background: bool = False
    since: bool = False
    """Whether it began where the last step ended, and the line tells its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveEnded:
    """A save is complete; `blocked` is how long training waited for it."""

    step: int | None = None
    checkpoint: str | None = None
    took: int | None = None
    background: bool = False
    blocked: int | None = None
    durable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveFailed:
    """A save did not complete."""

    step: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """A timer: how long a phase took that ends about here."""

    phase: str
    duration: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSays:
    """A phase begins or ends; `finished` is False for a sign from within it."""

    phase: str
    began: bool
    step: int | None = None
    sign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBegan:
    """A checkpoint is being read."""

    checkpoint: str | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadEnded:
    """A checkpoint was read, or could not be."""

    checkpoint: str | None = None
    step: int | None = None
    took: int | None = None
    failed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Continues:
    """Training goes on from a state of `completed` steps; 0 is from scratch."""

    completed: int
    checkpoint: str | None = None
    requested: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The program ends by itself: the training is `complete`, or it stops as planned.

    `ran` is how long the program says it ran.
    """

    complete: bool
    ran: int | None = None
    code: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Broke:
    """Something broke; `since` is how long before the line."""

    kind: str
    message: str
    rank: int | None = None
    exception: str | None = None
    ran_for: int | None = None
    timeout: int | None = None
    node: str | None = None
    collective: tuple[str, int] | None = None
    last_completed: int | None = None
    elements: int | None = None
    completed: int | None = None
    """Steps that were completed when it broke."""
    secondary: bool = False
    """Whether it is a consequence of something else, such as a lost connection to a peer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """The job is told to stop."""

    reason: str
    handled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftRank:
    """A rank's process ended; a negative code is a signal."""

    code: int | None
    rank: int | None = None
    by: str = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """A watcher of the scheduler says how the job is doing."""

    state: str
    job: str | None = None
    started: str | None = None
    expected: str | None = None
    alert: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeued:
    """The scheduler is asked to start the job again."""

    job: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherSays:
    """A line of a launcher or of Slurm."""

    said: Said


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Understood, of no weight for the ledger, but worth telling: what kind, and its words."""

    kind: str
    text: str


Saying = (
    StepLine
    | StepRun
    | At
    | OfRun
    | Published
    | Began
    | Configured
    | SaveBegan
    | SaveEnded
    | SaveFailed
    | Took
    | PhaseSays
    | LoadBegan
    | LoadEnded
    | Continues
    | Finished
    | Broke
    | Stops
    | LeftRank
    | JobState
    | Requeued
    | LauncherSays
    | Remark
)
