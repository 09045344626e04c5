"""Columns built at once hold what rows built one by one would hold."""

import json

from hypothesis import given
from hypothesis import strategies as st

from event_strategies import envelopes
from headway import wire
from headway.events import Envelope
from headway.storage.event_columns import event_table, fields_json
from headway.storage.rows import from_values


@given(st.lists(envelopes(), max_size=4))
def test_every_envelope_comes_back_from_its_columns(sent: list[Envelope]) -> None:
    assert [from_values(row) for row in event_table(sent).to_pylist()] == sent


@given(envelopes())
def test_the_fields_are_written_as_json_writes_them(envelope: Envelope) -> None:
    values = wire.to_fields(envelope.event)
    values.pop("packed", None)
    assert fields_json(envelope.event) == json.dumps(values)
