"""The envelope in which every event travels and is stored."""

from dataclasses import dataclass
from typing import Annotated

from headway.events.declaration import Described, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """One event, or a range of step records, with who recorded it and when.

    The producer's clock counts: event time is `anchor` + `monotonic`, plus the offset of the
    node's boot. `wall` is the wall clock's own opinion and only shows steps of that clock.
    """

    producer: Annotated[str, Described("Random 128-bit id of one recorder instance, in hex.")]
    anchor: Annotated[
        int,
        Described(
            "Wall-clock time at which the producer's monotonic clock read 0.", "ns", signed=True
        ),
    ]
    first_sequence: Annotated[int, Described("First record of the producer in this envelope.")]
    last_sequence: Annotated[int, Described("Last record of the producer in this envelope.")]
    run: Annotated[str | None, Described("Identity of the run.")]
    attempt: Annotated[str | None, Described("Identity of the attempt, once known.")] = None
    rank: Annotated[int | None, Described("Global rank that the event is about.")] = None
    node: Annotated[str | None, Described("Node that the event is about.")] = None
    boot_id: Annotated[str | None, Described("Identity of the node's boot.")] = None
    wall: Annotated[int, Described("Wall clock at the event.", "ns")]
    monotonic: Annotated[int, Described("Monotonic clock at the event.", "ns")]
    event: Event
