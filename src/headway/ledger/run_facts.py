"""What events say about the run as a whole: its end, its machines, its settings, its launchers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from headway.events import (
    Allocation,
    Dropped,
    Envelope,
    Misuse,
    RestartBudget,
    RestartPhase,
    RunConfigured,
    RunStarted,
)
from headway.ledger import checkpoints
from headway.ledger.attempts import launcher_states
from headway.ledger.extent import ending, signs
from headway.ledger.idle import Held
from headway.ledger.intake import Stamped
from headway.ledger.model import Problem


@dataclass(slots=True)
class RunFacts:
    """What events say about the run as a whole."""

    ended: tuple[int, str] | None
    signs: tuple[int | None, int]
    said: list[tuple[int, str, RestartPhase]]
    held: Held = field(default_factory=lambda: Held([]))
    requested: Held = field(default_factory=lambda: Held([]))
    configured: RunConfigured | None = None
    run_name: str | None = None
    num_dropped: int = 0
    budgets: dict[str, RestartBudget] = field(default_factory=dict)
    """What each layer said last about the restarts it has left."""
    problems: list[Problem] = field(default_factory=list)
    openings: Mapping[str, Sequence[int]] | None = None
    saves: list[checkpoints.Checkpoint] = field(default_factory=list)
    saves_by_identity: dict[str, list[checkpoints.Checkpoint]] = field(default_factory=dict)
    """The saves as read with the openings, which may change while no fact does."""


def read_facts(facts: Sequence[Stamped], as_of: int) -> RunFacts:
    """Collect what events say about the run as a whole."""
    told = RunFacts(ending(facts, as_of), signs(facts, as_of), launcher_states(facts, as_of))
    held: dict[int, int] = {}
    requested: dict[int, int] = {}
    for event in facts:
        record = event.envelope.event
        if event.time > as_of:
            break
        if isinstance(record, Allocation):
            if held.get(event.time, record.gpus_held) != record.gpus_held:
                detail = f"{held[event.time]} and {record.gpus_held} GPUs held at one time"
                told.problems.append(Problem(kind="overlapping_allocations", detail=detail))
            held[event.time] = record.gpus_held
            if record.gpus_requested is not None:
                requested[event.time] = record.gpus_requested
        elif isinstance(record, RunStarted):
            told.run_name = record.run_name
        elif isinstance(record, RunConfigured):
            told.configured = _completed(record, told.configured)
        elif isinstance(record, RestartBudget):
            told.budgets[record.layer] = record
        elif isinstance(record, Dropped):
            told.num_dropped += record.count
        elif isinstance(record, Misuse):
            told.problems.append(_misuse(event.envelope, record))
    told.held, told.requested = Held(held.items()), Held(requested.items())
    return told


def _completed(record: RunConfigured, before: RunConfigured | None) -> RunConfigured:
    """Return settings with what they leave unsaid taken from those told before."""
    if before is None:
        return record
    unsaid = [one.name for one in fields(record) if getattr(record, one.name) in (None, (), {})]
    return replace(record, **{name: getattr(before, name) for name in unsaid})


def _misuse(envelope: Envelope, record: Misuse) -> Problem:
    where = "" if envelope.rank is None else f" (rank {envelope.rank})"
    return Problem(kind=record.kind, detail=f"{record.detail or ''}{where}")
