"""The tables of the collector's database, derived from the declared envelope.

Events have no primary key: it would halve the rate of ingest, and the interval set, written in
the same transaction, already keeps each sequence number once.
"""

from sqlalchemy import BigInteger, Column, LargeBinary, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

from headway import wire
from headway.events import Envelope

METADATA = MetaData()

_TYPES: dict[type, type[TypeEngine[str] | TypeEngine[int]]] = {str: Text, int: BigInteger}


def _envelope_columns() -> list[Column[object]]:
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
    Column("packed", LargeBinary, comment="Packed step records, see `headway.step_blocks`."),
    comment="Every stored record, once per producer and sequence number.",
)

INTERVALS = Table(
    "intervals",
    METADATA,
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
