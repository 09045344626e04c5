"""Records in columns are told apart, trimmed and stored like records one by one."""

from collections.abc import Mapping
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import wire
from headway.blocks import Block, Column, Part, expanded
from headway.events import Envelope, PhaseEnded, StepsSummary
from headway.sequences import SequenceSet
from headway.storage.event_columns import event_table
from headway.storage.unseen import unseen
from records import ANCHOR, PRODUCER, SECOND


def block(numbers: list[int], fields: Mapping[str, Column], name: str = PhaseEnded.name) -> Block:
    """Return records of one rank with these sequence numbers, one a second."""
    shared = {"producer": PRODUCER, "anchor": ANCHOR, "run": "llama-1", "node": "n1"}
    sequence = np.array(numbers, np.int64)
    record = {
        "first_sequence": Column(None, sequence),
        "last_sequence": Column(None, sequence),
        "rank": Column(3, None),
        "wall": Column(None, (ANCHOR + sequence * SECOND).astype(np.uint64)),
        "monotonic": Column(None, sequence * SECOND),
    }
    found = wire.Producer(shared).build_alike(record, name, fields, len(numbers))
    assert found is not None
    return found


def phases(numbers: list[int]) -> Block:
    """Return phases whose durations are their sequence numbers."""
    durations = np.array(numbers, np.int64)
    columns = {"phase": Column("evaluation", None), "duration": Column(None, durations)}
    return block(numbers, columns)


NUMBERS = st.lists(st.integers(0, 60), min_size=1, max_size=40)


@given(st.lists(NUMBERS, min_size=1, max_size=5))
def test_however_numbers_repeat_and_overlap_each_is_new_once(batches: list[list[int]]) -> None:
    parts = [phases(numbers) for numbers in batches]
    stored = {("llama-1", PRODUCER): SequenceSet([(10, 20), (30, 30)])}
    found = unseen(parts, stored)
    one_by_one = unseen(list(expanded(parts)), stored)
    assert list(expanded(found.parts)) == list(expanded(one_by_one.parts))
    assert found.num_records == one_by_one.num_records
    assert found.num_received == sum(map(len, batches))
    assert {key: list(known) for key, known in found.known.items()} == {
        key: list(known) for key, known in one_by_one.known.items()
    }
    assert list(stored["llama-1", PRODUCER]) == [(10, 20), (30, 30)]


@given(st.lists(NUMBERS, min_size=1, max_size=4), st.booleans())
def test_columns_become_the_rows_that_their_records_would(
    batches: list[list[int]], alone: bool
) -> None:
    parts: list[Part] = [phases(numbers) for numbers in batches]
    if alone:
        parts.insert(1, parts[0].envelopes()[0] if isinstance(parts[0], Block) else parts[0])
    assert event_table(parts).equals(event_table(list(expanded(parts))))


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("note", {"text": Column(None, [f'he said "{n}" \u2713' for n in range(5)])}),
        ("heartbeat", {"last_step": Column(None, np.arange(5))}),
        ("heartbeat", {}),
        ("heartbeat", {"last_step": Column(None, np.arange(5)), "open_phases": Column((), None)}),
        (
            StepsSummary.name,
            {
                "first_step": Column(None, np.arange(5)),
                "num_steps": Column(1, None),
                "duration": Column(7, None),
            },
        ),
        (
            "gpu.sample",
            {
                "device": Column("GPU-1", None),
                "temperature": Column(None, [float(n) / 3 for n in range(5)]),
            },
        ),
    ],
)
def test_fields_of_every_type_are_written_alike(name: str, columns: Mapping[str, Column]) -> None:
    part = block(list(range(5)), columns, name)
    table = event_table([part])
    assert table.equals(event_table(part.envelopes()))


def test_a_part_of_a_block_is_the_same_records() -> None:
    numbers = Random(1).sample(range(1000), 50)  # noqa: S311
    whole = phases(numbers)
    assert whole.part(10, 30).envelopes() == whole.envelopes()[10:30]
    assert whole.first() == whole.envelopes()[0]
    times = [envelope.anchor + envelope.monotonic for envelope in whole.envelopes()]
    assert (whole.earliest, whole.latest) == (min(times), max(times))


def test_a_number_that_does_not_fit_its_declaration_makes_no_block() -> None:
    shared: dict[str, object] = {"producer": PRODUCER, "anchor": ANCHOR, "run": "llama-1"}
    numbers = Column(None, np.arange(5))
    record = {
        "first_sequence": numbers,
        "last_sequence": numbers,
        "wall": Column(None, np.arange(5)),
        "monotonic": numbers,
    }
    producer = wire.Producer(shared)
    fields = {"phase": Column("evaluation", None), "duration": Column(None, np.arange(-1, 4))}
    assert producer.build_alike(record, PhaseEnded.name, fields, 5) is None
    record["last_sequence"] = Column(None, np.arange(1, 6))
    fields["duration"] = numbers
    assert producer.build_alike(record, PhaseEnded.name, fields, 5) is None
    assert producer.build_alike(record, "teleported", fields, 5) is None


def test_envelopes_are_parts_too() -> None:
    envelope: Envelope = phases([7]).envelopes()[0]
    assert unseen([envelope, envelope], {}).parts == [envelope]
