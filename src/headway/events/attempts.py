"""One rank's attempt to train: who started it, where it runs and how it ended."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headway.events.declaration import Described, Event

LAYERS = ("scheduler", "launcher", "in_process")


SCHEDULERS = ("slurm", "kubernetes")


EXIT_BY = ("itself", "kernel", "launcher", "scheduler", "person", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted(Event):
    """One rank's process (in process: its function) entered an attempt; the time is its start."""

    name: ClassVar[str] = "attempt.started"
    layer: Annotated[str, Described("Who started the attempt.", choices=LAYERS)]
    world_size: Annotated[int | None, Described("Ranks of the group.", "ranks")] = None
    process_id: Annotated[int | None, Described("Operating system's process id.")] = None
    local_rank: Annotated[int | None, Described("Rank within the node.")] = None
    scheduler_job: Annotated[str | None, Described("Job id of the scheduler.")] = None
    launcher_round: Annotated[
        int | None, Described("Round, generation or cycle of the launcher.")
    ] = None
    iteration: Annotated[int | None, Described("Iteration of the in-process wrapper.")] = None
    torchelastic_restarts: Annotated[
        int | None, Described("TORCHELASTIC_RESTART_COUNT, as evidence only.")
    ] = None
    slurm_restarts: Annotated[int | None, Described("SLURM_RESTART_COUNT, as evidence only.")] = (
        None
    )
    visible_devices: Annotated[
        str | None, Described("CUDA_VISIBLE_DEVICES of the process, as evidence only.")
    ] = None
    scheduler: Annotated[
        str | None, Described("Who gave the run its machines.", choices=SCHEDULERS)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptBound(Event):
    """Records of this producer belong to an attempt whose identity became known later."""

    name: ClassVar[str] = "attempt.bound"
    attempt: Annotated[str, Described("Identity of the attempt.")]
    first_sequence: Annotated[int, Described("First record that belongs to it.")]
    last_sequence: Annotated[int, Described("Last record that belongs to it.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded(Event):
    """One rank left the attempt."""

    name: ClassVar[str] = "attempt.ended"
    exit_code: Annotated[int | None, Described("Exit code, if the process ended.", signed=True)] = (
        None
    )
    signal: Annotated[int | None, Described("Signal that ended the process.")] = None
    learned_from: Annotated[str | None, Described("How the end became known.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankExited(Event):
    """A rank's process ended, as its parent or its node saw it."""

    name: ClassVar[str] = "rank.exited"
    exit_code: Annotated[int | None, Described("Exit code.", signed=True)] = None
    signal: Annotated[int | None, Described("Signal that ended it.")] = None
    by: Annotated[str, Described("Who ended it.", choices=EXIT_BY)] = "unknown"
    process_id: Annotated[int | None, Described("Operating system's process id.")] = None
