"""Envelopes of one imagined rank, for tests that need some events and not a timeline."""

from headway import step_blocks
from headway.events import Envelope, Event, Steps

SECOND = 10**9
PRODUCER = "ab" * 16
ANCHOR = 1_700_000_000 * SECOND


def record(
    sequence: int,
    event: Event,
    *,
    producer: str = PRODUCER,
    count: int = 1,
    run: str | None = "llama-1",
) -> Envelope:
    """Return an envelope whose newest record is `sequence`, at as many seconds."""
    return Envelope(
        producer=producer,
        anchor=ANCHOR,
        first_sequence=sequence - count + 1,
        last_sequence=sequence,
        run=run,
        attempt="a1",
        rank=0,
        node="n1",
        boot_id="b1",
        wall=ANCHOR + sequence * SECOND,
        monotonic=sequence * SECOND,
        event=event,
    )


def steps(first: int, last: int, *, producer: str = PRODUCER, run: str = "llama-1") -> Envelope:
    """Return steps whose sequence numbers are their step numbers, one a second."""
    packed = step_blocks.pack(
        step_blocks.Step(
            start=(number - 1) * SECOND, duration=SECOND, loss=float(number), samples=number
        )
        for number in range(first, last + 1)
    )
    event = Steps(first_step=first, version=step_blocks.VERSION, packed=packed)
    return record(last, event, producer=producer, count=last - first + 1, run=run)
