"""What is known about an incident: values only; how they are derived stands in the siblings.

Times are UTC ns, durations ns; `None` means unknown or not yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

PHASES = ("detect", "teardown", "wait", "start", "load", "recompute")
"""Phases of an incident in their order."""


class Source(NamedTuple):
    """The record behind an observation."""

    producer: str
    sequence: int


class Seen(NamedTuple):
    """Circumstances of an observation: when it was made and what it saw began, who saw it."""

    time: int
    began: int
    rank: int | None
    node: str | None
    attempt: str
    source: Source | None

    @property
    def sources(self) -> tuple[Source, ...]:
        """The record behind it, if one is known."""
        return () if self.source is None else (self.source,)


PLANNED = ("preemption", "time_limit", "operator")
"""Causes of incidents that are no faults: the run was told to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One observation about an incident: when it was made, and when what it saw began.

    `rank` is accused, `observer` saw it. `kind` is the event's own word (a fault's kind, `exit`,
    `stop`, ...), `echo` marks what a dead peer looks like from outside, `named` that the record
    itself names the culprit. Of a GPU fault `classification` and `policy` say what it asks for and
    by which rules, `placed` how it was found whose the GPU is.
    """

    time: int
    began: int
    cause: str
    kind: str
    words: str
    rank: int | None = None
    node: str | None = None
    gpu: str | None = None
    observer: int | None = None
    phase: str | None = None
    signature: str | None = None
    echo: bool = False
    named: bool = False
    attempt: str | None = None
    sources: tuple[Source, ...] = ()
    classification: str | None = None
    policy: str | None = None
    placed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The cause that was chosen, the rule that chose it and whom the evidence accuses."""

    cause: str
    rule: str
    rank: int | None = None
    node: str | None = None
    gpu: str | None = None
    signature: str | None = None
    suspect_rule: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One attempt to recover: what its time went to, and how it broke (None: it did not)."""

    attempt: str
    number: int
    layer: str
    start: int
    end: int
    outcome: str
    resumed: int | None
    checkpoint: str | None
    cause: str | None
    suspect_rank: int | None
    phases: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPhase:
    """What the newest attempt of an open incident is in, and since when."""

    phase: str
    since: int
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """Whether re-executed steps agree with their first pass: yes, no or unknown, and why."""

    valid: str
    reason: str
    compared: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What people said about an incident: newest correction and newest acknowledgement."""

    cause: str | None = None
    author: str | None = None
    time: int | None = None
    reason: str | None = None
    acknowledged_by: str | None = None
    acknowledged_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One incident; `cause` is a person's where one corrected it, `original_cause` the rule's.

    `persistent` says what its breaks share in a row, also with those of incidents before; `alike`
    counts the most of its own that share something.

    `gpu_repeats` counts the run's incidents of the suspected GPU within seven days, this one
    included. `signature` is what the fault has in common with others of its kind.
    """

    incident: str
    number: int
    opened: int
    closed: int | None
    recovered: int | None
    caught_up: int | None
    cause: str
    original_cause: str
    rule: str
    layer: str | None
    suspect_rank: int | None
    suspect_node: str | None
    suspect_gpu: str | None
    suspect_rule: str | None
    signature: str | None
    rollback_steps: int | None
    rollback: int | None
    attempts: tuple[str, ...]
    outcome: str
    validity: Validity
    phases: Mapping[str, int]
    tries: tuple[Try, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    persistent: Mapping[str, int] = field(default_factory=dict)
    alike: int = 0
    gpu_repeats: int | None = None
    suspected_false_alarm: bool = False
    warnings: tuple[str, ...] = ()
    open_phase: OpenPhase | None = None
    judgement: Judgement = field(default_factory=Judgement)
