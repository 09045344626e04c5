"""The collector's quick way from columns to records gives what the contract's own way gives."""

from hypothesis import given
from hypothesis import strategies as st

from headway import step_blocks
from headway.collector.otlp.step_columns import from_columns, in_records
from headway.step_blocks import Step

INT64 = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.lists(st.tuples(INT64, INT64, INT64, st.floats(), INT64), min_size=1, max_size=20)


@given(NUMBERS)
def test_both_ways_agree_on_any_steps(numbers: list[tuple[int, int, int, float, int]]) -> None:
    columns = step_blocks.to_columns(step_blocks.pack(Step(*values) for values in numbers))
    assert from_columns(columns) == step_blocks.from_columns(columns)


def test_what_holds_no_columns_is_left_to_the_contracts_own_checks() -> None:
    for attributes in (
        {"version": 1, "packed": bytes(40)},
        {"version": 2, "packed": bytes(41)},
        {"version": 2, "packed": b""},
        {"version": 2, "packed": "text"},
        {"version": 2},
        {},
    ):
        assert in_records(attributes) is attributes
