"""What people, programs and reports add to a run: files, notes, results and judgements."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headway.events.declaration import Described, Event

NOTE_SUBJECTS = ("run", "incident", "node", "configuration")
"""What a person's note can be about; a configuration is that of one attempt."""


CAUSES = (
    "exception",
    "gpu_oom",
    "host_oom",
    "collective_timeout",
    "hang",
    "killed",
    "gpu_fault",
    "node_lost",
    "network",
    "storage",
    "preemption",
    "time_limit",
    "operator",
    "startup_failure",
    "numerical",
    "unknown",
)
"""Every class of incident."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact(Event):
    """A file that helps to explain an incident."""

    name: ClassVar[str] = "artifact"
    kind: Annotated[str, Described("What it is.")]
    path: Annotated[str, Described("Where it lies.")]
    size: Annotated[int | None, Described("Its size.", "bytes")] = None
    sha256: Annotated[str | None, Described("Its checksum.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Event):
    """Something a person or a program wanted to be remembered."""

    name: ClassVar[str] = "note"
    text: Annotated[str, Described("Its words; empty where it only changes labels.")]
    author: Annotated[str | None, Described("Who wrote it.")] = None
    about: Annotated[
        str | None, Described("What a person's note is about.", choices=NOTE_SUBJECTS)
    ] = None
    subject: Annotated[
        str | None, Described("Identity of that run, incident, node or attempt.")
    ] = None
    labels: Annotated[tuple[str, ...], Described("Labels that its subject gets.")] = ()
    labels_removed: Annotated[tuple[str, ...], Described("Labels that its subject loses.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultAttached(Event):
    """The result of a benchmark or a drill, kept with the configuration that produced it."""

    name: ClassVar[str] = "result.attached"
    title: Annotated[str, Described("Name of the benchmark or drill; results of one compare.")]
    content: Annotated[str, Described("What it printed, a JSON object.")]
    configuration: Annotated[
        str, Described("Identity of the attempt whose configuration produced it.")
    ]
    author: Annotated[str | None, Described("Who attached it.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentAcknowledged(Event):
    """A person took charge of an incident."""

    name: ClassVar[str] = "incident.acknowledged"
    incident: Annotated[str, Described("Identity of the incident.")]
    author: Annotated[str, Described("Who took charge.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentCorrected(Event):
    """A person corrected the cause of an incident; the rule's own verdict stays on record."""

    name: ClassVar[str] = "incident.corrected"
    incident: Annotated[str, Described("Identity of the incident.")]
    cause: Annotated[str, Described("The cause in the person's judgement.", choices=CAUSES)]
    author: Annotated[str, Described("Who says so.")]
    reason: Annotated[str | None, Described("Why.")] = None
