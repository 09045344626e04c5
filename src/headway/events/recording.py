"""What Headway tells of itself: what it costs, what it lost and how it was misused."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headway.events.declaration import NANOSECONDS, Described, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderCost(Event):
    """What recording one step took of the training, as the recorder measured it now and then."""

    name: ClassVar[str] = "recorder.cost"
    step: Annotated[
        int, Described("Time from the call to its return, at begin and end.", NANOSECONDS)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCost(Event):
    """What the node agent takes of its node."""

    name: ClassVar[str] = "agent.cost"
    cpu: Annotated[float, Described("Share of one core since the sample before.")]
    memory: Annotated[int, Described("Memory resident.", "bytes")]
    version: Annotated[str | None, Described("The agent's version of Headway.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(Event):
    """Records that were lost before they could be stored."""

    name: ClassVar[str] = "dropped"
    count: Annotated[int, Described("How many.", "records")]
    reason: Annotated[str, Described("Why.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRecovered(Event):
    """The collector could open its database only after repairing its log, or found it short."""

    name: ClassVar[str] = "storage.recovered"
    reason: Annotated[str, Described("What was wrong.")]
    set_aside: Annotated[
        tuple[str, ...], Described("Where what was damaged is kept, to be looked at.")
    ] = ()
    kept: Annotated[int, Described("Part of the log that was whole.", "bytes")] = 0
    damaged: Annotated[int, Described("Part of the log that could not be read.", "bytes")] = 0
    lost: Annotated[
        int, Described("Records that had been acknowledged and are not stored.", "records")
    ] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Misuse(Event):
    """The recorder was used in a way it cannot make sense of; reported once per kind."""

    name: ClassVar[str] = "misuse"
    kind: Annotated[str, Described("What was wrong.")]
    detail: Annotated[str | None, Described("The offending value and the next step.")] = None
