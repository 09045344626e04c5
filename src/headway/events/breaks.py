"""What ends an attempt, and how a layer gets the run going again."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headway.events.attempts import LAYERS
from headway.events.declaration import NANOSECONDS, Described, Event

FAULT_KINDS = (
    "exception",
    "gpu_oom",
    "host_oom",
    "collective_timeout",
    "heartbeat_timeout",
    "section_timeout",
    "hang",
    "signal",
    "lost_rank",
    "lost_node",
    "network",
    "storage",
    "health_check",
    "numerical",
    "unknown",
)


STOP_REASONS = ("sigterm", "preemption", "time_limit", "maintenance", "operator")


RESTART_PHASES = (
    "abort",
    "stop_workers",
    "finalize",
    "health_check",
    "backoff",
    "wait_nodes",
    "rendezvous",
    "spawn",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Event):
    """One observed breakage; the time is the observation's."""

    name: ClassVar[str] = "fault"
    kind: Annotated[str, Described("What was observed.", choices=FAULT_KINDS)]
    message: Annotated[str | None, Described("Its words.")] = None
    exception: Annotated[str | None, Described("Qualified name of the exception.")] = None
    traceback: Annotated[str | None, Described("Where it was raised.")] = None
    signal: Annotated[int | None, Described("Signal that ended the rank.")] = None
    ran_for: Annotated[
        int | None, Described("How long the watchdog had waited when it fired.", NANOSECONDS)
    ] = None
    timeout: Annotated[int | None, Described("Its configured limit.", NANOSECONDS)] = None
    phase: Annotated[str | None, Described("Phase or section in which it struck.")] = None
    step: Annotated[int | None, Described("Step during which it struck.", "steps")] = None
    suspect_rank: Annotated[int | None, Described("Rank that the evidence accuses.")] = None
    suspect_node: Annotated[str | None, Described("Node that the evidence accuses.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAnnounced(Event):
    """The attempt was told to stop."""

    name: ClassVar[str] = "stop.announced"
    reason: Annotated[str, Described("Who wants it to stop, or why.", choices=STOP_REASONS)]
    grace: Annotated[int | None, Described("Time until it is killed.", NANOSECONDS)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(Event):
    """Result of one health check."""

    name: ClassVar[str] = "health"
    check: Annotated[str, Described("Name of the check.")]
    state: Annotated[str, Described("Its result.", choices=("healthy", "unhealthy", "disabled"))]
    detail: Annotated[str | None, Described("Its words.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPhase(Event):
    """A launcher or wrapper entered or left one phase of a restart."""

    name: ClassVar[str] = "restart.phase"
    layer: Annotated[str, Described("Which layer restarts.", choices=LAYERS)]
    phase: Annotated[str, Described("Phase of the restart.", choices=RESTART_PHASES)]
    state: Annotated[str, Described("Whether it begins or ends.", choices=("began", "ended"))]
    detail: Annotated[str | None, Described("Its words.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartBudget(Event):
    """How many more restarts a layer allows, each time that it is known."""

    name: ClassVar[str] = "restart.budget"
    layer: Annotated[str, Described("Which layer restarts.", choices=LAYERS)]
    remaining: Annotated[int, Described("Restarts left.", "restarts")]
    limit: Annotated[int | None, Described("Restarts allowed in all.", "restarts")] = None
