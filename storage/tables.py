"""The tables of the collector's database, derived from the declared envelope and categories.

Events have no primary key: it would halve the rate of ingest, and the interval set, written in
the same transaction, already keeps each sequence number once. What is derived from events is
written as rows with a revision and never updated in place: of a key the highest revision counts,
and only while it is `present`.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    LargeBinary,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.types import TypeEngine

from headway import wire
from headway.events import Envelope
from headway.metrics import CATEGORIES

METADATA = MetaData()

_TYPES: dict[type, type[TypeEngine[str] | TypeEngine[int]]] = {str: Text, int: BigInteger}


def _envelope_columns() -> list[Column[Any]]:
    return [
        Column(name, _TYPES[spec.kind], comment=spec.described.sentence)
        for name, spec in wire.specs(Envelope).items()
    ]


EVENTS = Table(
    "events",
    METADATA,
    *_envelope_columns(),
    Column("name", Text, nullable=False, comment="Wire name of the event."),
    Column("fields", Text, nullable=False, comment="Fields of the event as JSON, without packed."),
    Column("packed", LargeBinary, comment="Packed steps, see `headway.storage.step_packing`."),
    comment="Every stored record, once per run, producer and sequence number.",
)

INTERVALS = Table(
    "intervals",
    METADATA,
    Column("run", Text, comment="Run of the records; null where they are about none."),
    Column("producer", Text, nullable=False, comment="Producer whose records are stored."),
    Column("first_sequence", BigInteger, nullable=False, comment="First record of a full range."),
    Column("last_sequence", BigInteger, nullable=False, comment="Last record of the range."),
    comment="Sequence numbers that are stored; what lies between two ranges is missing.",
)

QUARANTINE = Table(
    "quarantine",
    METADATA,
    Column("digest", Text, nullable=False, comment="SHA-256 of the raw form."),
    Column("received", BigInteger, nullable=False, comment="When it arrived, UTC ns."),
    Column("reason", Text, nullable=False, comment="Why it is no event."),
    Column("raw", Text, nullable=False, comment="The record and its resource as JSON."),
    comment="Records that were received but are no events of this version; each raw form once.",
)


def _text(name: str, comment: str, nullable: bool = True) -> Column[str]:
    return Column(name, Text, nullable=nullable, comment=comment)


def _integer(name: str, comment: str, nullable: bool = True) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable, comment=comment)


def _ratio(name: str, comment: str) -> Column[float]:
    return Column(name, Double, comment=comment)


def _derived(name: str, comment: str, keys: Sequence[str], *columns: Column[Any]) -> Table:
    """Return a table of what the ledger says; `keys` beside the run tell its rows apart."""
    return Table(
        name,
        METADATA,
        _text("run", "Identity of the run.", nullable=False),
        *columns,
        _integer("revision", "Which word about it this is, from 1.", nullable=False),
        _integer("recorded", "When it was written, UTC ns.", nullable=False),
        Column("present", Boolean, nullable=False, comment="Whether it is still so."),
        comment=comment,
        info={"keys": ("run", *keys)},
    )


RUNS = _derived(
    "runs",
    "What the ledger says of each run, as rows with a revision.",
    (),
    _text("run_name", "Name that people gave the run."),
    _text("state", "Running, completed, failed, stopped or abandoned."),
    Column("provisional", Boolean, comment="Whether later events may still change it."),
    _integer("started", "First evidence of allocation, UTC ns."),
    _integer("ended", "End of the run, UTC ns; null while it runs."),
    _integer("as_of", "Time up to which this was reckoned, UTC ns."),
    _integer("elapsed", "Time of the run in ns."),
    *(
        _integer(category.name, f"Time in ns. {category.description}")
        for category in CATEGORIES.values()
    ),
    _ratio("training_goodput_low", "Training goodput over wall time, 0 to 1, at least."),
    _ratio("training_goodput_high", "Training goodput over wall time, 0 to 1, at most."),
    _ratio("infrastructure_goodput_low", "Infrastructure goodput, 0 to 1, at least."),
    _ratio("infrastructure_goodput_high", "Infrastructure goodput, 0 to 1, at most."),
    _integer("gpus", "GPUs held at the end."),
    _integer("gpu_elapsed", "Time of the run in GPU-ns, weighted by GPUs held."),
    _integer("attempts", "Attempts."),
    _integer("failed_starts", "Attempts that ended without a step."),
    _integer("highest_step", "Highest step ever completed."),
    _integer("surviving_steps", "Steps whose result is in the newest state."),
    _integer("rework_steps", "Steps executed again."),
    _text("labels", "Team, cluster, owner and the like as JSON."),
    _text("summary", "The whole summary of the run as JSON."),
)

ATTEMPTS = _derived(
    "attempts",
    "Every attempt of every run, as rows with a revision.",
    ("attempt",),
    _text("attempt", "Identity of the attempt.", nullable=False),
    _integer("number", "Position among the run's attempts, from 1."),
    _text("layer", "Who started it: scheduler, launcher or in_process."),
    _integer("started", "Begin, UTC ns."),
    _integer("ended", "End, UTC ns; null while it lives."),
    _text("outcome", "never_formed, no_step or progressed."),
    _integer("resumed", "Steps in the state from which it trained."),
    _text("checkpoint", "Checkpoint from which it trained."),
    _integer("first_step", "First step completed."),
    _integer("last_step", "Last step completed."),
    _integer("world_size", "Ranks of the group."),
    _text("ended_by", "fault or stop, where that is known."),
)

INCIDENTS = _derived(
    "incidents",
    "Every incident of every run, as rows with a revision.",
    ("incident",),
    _text("incident", "Identity of the incident.", nullable=False),
    _integer("number", "Position among the run's incidents, from 1."),
    _integer("opened", "When it opened, UTC ns."),
    _integer("closed", "When an attempt held, UTC ns; null while it is open."),
    _integer("recovered", "First step completed after resuming, UTC ns."),
    _integer("caught_up", "Old highest step completed again, UTC ns."),
    _text("cause", "Class of the incident, a person's correction included."),
    _text("original_cause", "Class that the rules chose."),
    _text("rule", "Rule that chose the cause."),
    _text("layer", "Layer that recovered it."),
    _integer("suspect_rank", "Suspected rank."),
    _text("suspect_node", "Suspected node."),
    _text("suspect_gpu", "Suspected GPU."),
    _integer("rollback_steps", "Steps lost."),
    _integer("rollback", "Time of the lost steps in ns."),
    _integer("lost", "Time lost to it in ns."),
    _integer("lost_gpu", "Time lost to it in GPU-ns."),
    _integer("attempts", "Attempts it took."),
    _text("outcome", "How the recovery ended."),
    _text("headline", "It in one sentence."),
    _text("content", "The whole incident as JSON."),
)

CHECKPOINTS = _derived(
    "checkpoints",
    "Every save of every run, as rows with a revision.",
    ("number",),
    _integer("number", "Position among the run's saves, from 1.", nullable=False),
    _text("checkpoint", "Identity of the checkpoint within the run."),
    _integer("step", "Optimizer steps in the saved state."),
    _text("attempt", "Attempt that scheduled it."),
    _text("state", "scheduled, claimed, verified, revoked or failed."),
    _text("tier", "Where the copy lies: memory, local or shared."),
    _integer("scheduled", "When it was handed over, UTC ns."),
    _integer("finalized", "When its completion was observed, UTC ns."),
    _integer("durable_since", "Since when it counted as durable, UTC ns."),
    _integer("blocking", "Time for which training waited, in ns."),
    _integer("staging", "Time the copy took, in ns."),
    _integer("background", "From scheduled to finalized, in ns."),
    _integer("bytes_staged", "Bytes copied for the writer."),
    _integer("bytes_written", "Bytes written."),
    _integer("queue_depth", "Saves not yet finalized when it was scheduled."),
    _integer("lowest_memory", "Least memory available on a node while it was written, in bytes."),
    _ratio("highest_pressure", "Highest memory pressure of a node while it was written, 0 to 1."),
)

SEGMENTS = _derived(
    "segments",
    "The steps of one attempt between two checkpoints, kept when their raw records expire.",
    ("attempt", "first_row"),
    _text("attempt", "Identity of the attempt.", nullable=False),
    _integer("first_row", "How many steps of the attempt came before.", nullable=False),
    _integer("num_steps", "Steps of the group.", nullable=False),
    _integer("first_step", "Number of the first step."),
    _integer("last_step", "Number of the last step."),
    _integer("started", "Start of the first step, UTC ns."),
    _integer("ended", "End of the last step, UTC ns."),
    _integer("work", "Time in the steps themselves, in ns."),
    _integer("data_wait", "Time of waiting for data, in ns."),
    _integer("other", "Time of what lay between steps, in ns: saves, evaluation, stalls."),
    _text("detail", "What the ledger needs of these steps, as JSON."),
)

DERIVED = (RUNS, ATTEMPTS, INCIDENTS, CHECKPOINTS, SEGMENTS)
"""Tables of rows with a revision; `info["keys"]` names the columns that tell rows apart."""
