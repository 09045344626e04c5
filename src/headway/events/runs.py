"""A run: its begin, its end, its settings and the machines that it holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from headway.events.declaration import NANOSECONDS, Described, Event, Scalar

END_REASONS = ("completed", "failed", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A training run began at step 0."""

    name: ClassVar[str] = "run.started"
    run_name: Annotated[str, Described("Name that people gave the run.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """The run is over and no attempt will follow."""

    name: ClassVar[str] = "run.ended"
    reason: Annotated[str, Described("How the run ended.", choices=END_REASONS)]
    message: Annotated[str | None, Described("What the program said about its end.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfigured(Event):
    """Settings of the run as one attempt saw them."""

    name: ClassVar[str] = "run.configured"
    target_step: Annotated[int | None, Described("Step at which the run is complete.", "steps")] = (
        None
    )
    checkpoint_interval: Annotated[
        int | None, Described("Steps between two scheduled checkpoints.", "steps")
    ] = None
    world_size: Annotated[int | None, Described("Ranks of the group.", "ranks")] = None
    min_world_size: Annotated[
        int | None, Described("Fewest ranks with which the group trains.", "ranks")
    ] = None
    parallelism: Annotated[
        Mapping[str, Scalar] | None, Described("Degree of each kind of parallelism.")
    ] = None
    timeouts: Annotated[
        Mapping[str, Scalar] | None, Described("Every configured timeout by name.", NANOSECONDS)
    ] = None
    restart_limits: Annotated[
        Mapping[str, Scalar] | None, Described("Restarts allowed per layer.", "restarts")
    ] = None
    versions: Annotated[Mapping[str, Scalar] | None, Described("Version of each library.")] = None
    code_revision: Annotated[str | None, Described("Revision of the training code.")] = None
    tokens_per_step: Annotated[int | None, Described("Tokens in one optimizer step.", "tokens")] = (
        None
    )
    flops_per_step: Annotated[
        float | None, Described("Floating-point operations in one optimizer step.", "flop")
    ] = None
    labels: Annotated[
        Mapping[str, Scalar] | None,
        Described("Team, cluster, owner, GPU type, priority and the like."),
    ] = None
    links: Annotated[Mapping[str, Scalar] | None, Described("Addresses of tracker and logs.")] = (
        None
    )
    options: Annotated[
        Mapping[str, Scalar] | None, Described("Any other option worth comparing.")
    ] = None
    command: Annotated[
        str | None, Described("Command line of the process that told the settings.")
    ] = None
    environment: Annotated[
        Mapping[str, Scalar] | None, Described("Environment variables that steer libraries.")
    ] = None
    training_good: Annotated[
        tuple[str, ...], Described("Custom categories whose time counts as training good.")
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation(Event):
    """Machines that the run holds and has asked for, from this moment on."""

    name: ClassVar[str] = "allocation"
    gpus_held: Annotated[int, Described("GPUs held by the run.", "GPUs")]
    gpus_requested: Annotated[int | None, Described("GPUs the run asked for.", "GPUs")] = None
    nodes_held: Annotated[int | None, Described("Nodes held by the run.", "nodes")] = None
    nodes_requested: Annotated[int | None, Described("Nodes the run asked for.", "nodes")] = None
    source: Annotated[str | None, Described("Who says so.")] = None
