"""Packed steps in the database: the same after they were stored, smaller where they are many."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.step_blocks import LAYOUT, Step, pack
from headway.storage import step_packing

STEPS = st.lists(
    st.builds(
        Step,
        start=st.integers(-(2**63), 2**63 - 1),
        duration=st.integers(-(2**63), 2**63 - 1),
        data_wait=st.integers(0, 2**40),
        loss=st.floats(),
        samples=st.integers(-1, 2**50),
    ),
    min_size=1,
    max_size=200,
)


@given(STEPS)
def test_what_is_stored_of_steps_is_read_again_bit_by_bit(steps: list[Step]) -> None:
    packed = pack(steps)
    assert step_packing.unpack(step_packing.pack(packed)) == packed


@given(STEPS)
def test_what_was_stored_as_it_came_is_told_from_what_is_packed(steps: list[Step]) -> None:
    packed = pack(steps)
    stored = step_packing.pack(packed)
    assert stored == packed or len(stored) % LAYOUT.size
    assert step_packing.unpack(packed) == packed


def test_a_thousand_even_steps_take_a_third_of_their_bytes() -> None:
    packed = pack(Step(10**15 + 10**9 * n, 9 * 10**8 + n % 97, 10**6, 2.5, n) for n in range(1000))
    assert len(step_packing.pack(packed)) < len(packed) / 3


@pytest.mark.parametrize("cut", [1, 4, 5, 30])
def test_damaged_steps_are_refused_and_no_crash(cut: int) -> None:
    stored = step_packing.pack(pack(Step(n, 7) for n in range(100)))
    with pytest.raises(ValueError, match="damaged"):
        step_packing.unpack(stored[:cut])
