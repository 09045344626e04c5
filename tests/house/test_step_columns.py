"""Steps in columns, as they travel: the same numbers, whatever they are, and fewer bytes."""

import gzip
import math
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import step_blocks, wire
from headway.events import Envelope, Steps
from headway.step_blocks import Step

INT64 = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.lists(st.tuples(INT64, INT64, INT64, st.floats(), INT64), min_size=1, max_size=20)


@given(NUMBERS)
def test_any_records_come_back_from_their_columns(
    numbers: list[tuple[int, int, int, float, int]],
) -> None:
    packed = step_blocks.pack(Step(*values) for values in numbers)
    columns = step_blocks.to_columns(packed)
    assert len(columns) == len(packed)
    assert step_blocks.from_columns(columns) == packed


def test_columns_hold_the_lowest_bytes_first() -> None:
    steps = [Step(10, 3, 4, 0.0, 7), Step(0x120, 1, 0, 0.0, 9)]
    columns = step_blocks.to_columns(step_blocks.pack(steps))
    idle, duration, samples = columns[:16], columns[16:32], columns[64:]
    # 6 before the first wait, then 0x120 - 13 = 275: folded 12 and 550 = 0x226
    assert idle == bytes([12, 0x26, 0, 2]) + bytes(12)
    assert duration == bytes([6, 2]) + bytes(14)
    assert samples == bytes([14, 4]) + bytes(14)


def test_the_steps_of_a_second_compress_to_less_than_half_the_records() -> None:
    chance = random.Random(1)  # noqa: S311  # made-up steps
    time = 10**15
    steps = []
    for number in range(100):
        wait, duration = chance.randint(10**7, 2 * 10**7), chance.randint(7 * 10**7, 8 * 10**7)
        (loss,) = struct.unpack("<f", struct.pack("<f", chance.gauss(2, 0.1)))
        steps.append(Step(time + wait, duration, wait, loss, 512 * number))
        time += wait + duration + chance.randint(1000, 20_000)
    packed = step_blocks.pack(steps)
    assert 2 * len(gzip.compress(step_blocks.to_columns(packed))) < len(packed)


def envelope(event: Steps) -> dict[str, object]:
    return wire.to_json(
        Envelope(
            producer="p",
            anchor=0,
            first_sequence=0,
            last_sequence=1,
            run="r",
            wall=0,
            monotonic=0,
            event=event,
        )
    )


def test_who_builds_an_envelope_gets_records_from_columns() -> None:
    packed = step_blocks.pack([Step(1, 2), Step(4, 5, 1, math.inf, 6)])
    event = Steps(first_step=1, version=step_blocks.VERSION, packed=packed)
    assert wire.from_json(envelope(wire.in_columns(event))).event == event


def test_columns_of_a_length_that_cannot_be_are_refused() -> None:
    event = Steps(first_step=1, version=step_blocks.COLUMNS, packed=bytes(41))
    with pytest.raises(wire.WireError, match="41 bytes"):
        wire.from_json(envelope(event))
