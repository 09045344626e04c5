"""Every event that Headway records, declared once.

Each class is one kind of event: its docstring, its fields, their units and their sentences are
the only place where these are written. Wire names, tables and the reference page derive from
here (`headway.wire`, `headway generate`). Standard library only: training processes import it.

Times are UTC integer nanoseconds, durations integer nanoseconds of a monotonic clock, bytes are
bytes, ratios are 0 to 1, and `None` means unknown.
"""

from collections.abc import Mapping

from headway.events.attempts import (
    EXIT_BY,
    LAYERS,
    SCHEDULERS,
    AttemptBound,
    AttemptEnded,
    AttemptStarted,
    RankExited,
)
from headway.events.breaks import (
    FAULT_KINDS,
    RESTART_PHASES,
    STOP_REASONS,
    Fault,
    Health,
    RestartBudget,
    RestartPhase,
    StopAnnounced,
)
from headway.events.checkpoints import (
    TIERS,
    CheckpointFailed,
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointLoadFailed,
    CheckpointScheduled,
    CheckpointStaged,
)
from headway.events.declaration import Described, Event, Scalar
from headway.events.envelope import Envelope
from headway.events.gpus import (
    GPU_FAULT_CLASSES,
    GPU_FAULT_KINDS,
    GpuFault,
    GpuPresent,
    GpuSample,
    GpuSxid,
    GpuXid,
    RankDevice,
)
from headway.events.nodes import Clock, NicSample, NodeMemory
from headway.events.phases import PHASES, Heartbeat, PhaseBegan, PhaseEnded
from headway.events.recording import AgentCost, Dropped, Misuse, RecorderCost, StorageRecovered
from headway.events.remarks import (
    CAUSES,
    NOTE_SUBJECTS,
    Artifact,
    IncidentAcknowledged,
    IncidentCorrected,
    Note,
    ResultAttached,
)
from headway.events.runs import END_REASONS, Allocation, RunConfigured, RunEnded, RunStarted
from headway.events.steps import Resumed, Steps, StepsSummary

__all__ = [
    "CAUSES",
    "END_REASONS",
    "EVENTS",
    "EXIT_BY",
    "FAULT_KINDS",
    "GPU_FAULT_CLASSES",
    "GPU_FAULT_KINDS",
    "LAYERS",
    "NOTE_SUBJECTS",
    "PHASES",
    "RESTART_PHASES",
    "SCHEDULERS",
    "STOP_REASONS",
    "TIERS",
    "AgentCost",
    "Allocation",
    "Artifact",
    "AttemptBound",
    "AttemptEnded",
    "AttemptStarted",
    "CheckpointFailed",
    "CheckpointFinalized",
    "CheckpointLoadFailed",
    "CheckpointLoaded",
    "CheckpointScheduled",
    "CheckpointStaged",
    "Clock",
    "Described",
    "Dropped",
    "Envelope",
    "Event",
    "Fault",
    "GpuFault",
    "GpuPresent",
    "GpuSample",
    "GpuSxid",
    "GpuXid",
    "Health",
    "Heartbeat",
    "IncidentAcknowledged",
    "IncidentCorrected",
    "Misuse",
    "NicSample",
    "NodeMemory",
    "Note",
    "PhaseBegan",
    "PhaseEnded",
    "RankDevice",
    "RankExited",
    "RecorderCost",
    "RestartBudget",
    "RestartPhase",
    "ResultAttached",
    "Resumed",
    "RunConfigured",
    "RunEnded",
    "RunStarted",
    "Scalar",
    "Steps",
    "StepsSummary",
    "StopAnnounced",
    "StorageRecovered",
]

EVENTS: Mapping[str, type[Event]] = {
    kind.name: kind
    for _, kind in sorted(globals().items())
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
}
"""Every kind of event by its wire name."""
