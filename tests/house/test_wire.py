"""The flat form: what goes out comes back, and nothing else comes in."""

import contextlib
import itertools
import json
import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from event_strategies import STEPS, envelopes
from headway import step_blocks, wire
from headway.events import EVENTS, Envelope, Fault, RunConfigured, Steps, StepsSummary

ENVELOPE = {
    "producer": "p",
    "anchor": 0,
    "first_sequence": 1,
    "last_sequence": 1,
    "run": "run",
    "wall": 5,
    "monotonic": 5,
}


def record(name: str = "fault", **fields: Any) -> dict[str, Any]:
    return {**ENVELOPE, "name": name, "fields": fields or {"kind": "exception"}}


@given(envelopes())
def test_every_event_comes_back_from_json_as_it_was(envelope: Envelope) -> None:
    text = json.dumps(wire.to_json(envelope))

    assert wire.from_json(json.loads(text)) == envelope


@given(envelopes())
def test_every_event_comes_back_from_flat_fields_as_it_was(envelope: Envelope) -> None:
    fields = wire.to_fields(envelope.event)

    assert None not in fields.values()
    assert wire.from_fields(envelope.event.name, fields) == envelope.event


@given(envelopes(), st.text(min_size=1), st.integers())
def test_a_field_of_a_newer_version_is_ignored(envelope: Envelope, name: str, value: int) -> None:
    flat = wire.to_json(envelope)
    if name not in wire.specs(type(envelope.event)):
        flat["fields"] = {**flat["fields"], name: value}

    assert wire.from_json(flat) == envelope


@given(STEPS, st.data())
def test_a_block_of_steps_cut_anywhere_and_joined_is_the_same_block(
    steps: list[step_blocks.Step], data: st.DataObject
) -> None:
    whole = Envelope(
        **{**ENVELOPE, "first_sequence": 10, "last_sequence": 9 + len(steps)},
        event=Steps(first_step=7, version=step_blocks.VERSION, packed=step_blocks.pack(steps)),
    )
    cuts = data.draw(st.sets(st.integers(11, 9 + len(steps)))) if len(steps) > 1 else set()
    edges = [10, *sorted(cuts), 10 + len(steps)]
    pieces = [wire.trim(whole, first, end - 1) for first, end in itertools.pairwise(edges)]

    joined = b"".join(piece.event.packed for piece in pieces if isinstance(piece.event, Steps))
    assert joined == step_blocks.pack(steps)
    for piece in pieces:
        assert isinstance(piece.event, Steps)
        assert piece.event.first_step - 7 == piece.first_sequence - 10
        newest = steps[piece.last_sequence - 10]
        assert piece.anchor + piece.monotonic == whole.anchor + newest.start + newest.duration or (
            piece is whole
        )
        assert piece.wall - piece.monotonic == whole.wall - whole.monotonic


@given(st.integers(2, 50), st.integers(0, 10**12), st.data())
def test_a_summary_cut_in_two_keeps_its_steps_and_its_duration(
    num_steps: int, duration: int, data: st.DataObject
) -> None:
    whole = Envelope(
        **{**ENVELOPE, "last_sequence": num_steps, "monotonic": duration + 1},
        event=StepsSummary(first_step=3, num_steps=num_steps, duration=duration),
    )
    cut = data.draw(st.integers(1, num_steps - 1))

    head, tail = wire.trim(whole, 1, cut), wire.trim(whole, cut + 1, num_steps)

    assert isinstance(head.event, StepsSummary)
    assert isinstance(tail.event, StepsSummary)
    assert head.event.num_steps + tail.event.num_steps == num_steps
    assert head.event.duration + tail.event.duration == duration
    assert tail.event.first_step == 3 + cut
    assert tail.monotonic == whole.monotonic
    assert head.monotonic == tail.monotonic - tail.event.duration


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*ENVELOPE, "name", "fields", "rank", "x"]), JSON))
def test_arbitrary_json_is_refused_with_a_sentence(value: dict[str, Any]) -> None:
    with pytest.raises(wire.WireError, match=r".+"):
        wire.from_json(value)


@given(st.data())
def test_one_arbitrary_value_in_a_good_record_is_taken_or_refused_with_a_sentence(
    data: st.DataObject,
) -> None:
    flat = wire.to_json(data.draw(envelopes()))
    inside = data.draw(st.booleans()) and flat["fields"]
    target = flat["fields"] if inside else flat
    target[data.draw(st.sampled_from(sorted(target)))] = data.draw(JSON)

    with contextlib.suppress(wire.WireError):
        taken = wire.from_json(flat)
        assert wire.from_json(wire.to_json(taken)) == taken


def test_an_unknown_event_is_named_with_the_known_ones() -> None:
    with pytest.raises(wire.WireError, match=r"'falt'; known: .*fault.*steps"):
        wire.from_json(record("falt"))


def test_an_unknown_choice_is_named_with_the_known_ones() -> None:
    with pytest.raises(wire.WireError, match=r"kind 'cosmic ray'; known: exception, gpu_oom"):
        wire.from_json(record(kind="cosmic ray"))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"message": "x"}, "field 'kind' is missing"),
        ({"kind": "signal", "signal": "9"}, "signal must be int, got '9'"),
        ({"kind": "signal", "signal": True}, "signal must be int, got True"),
        ({"kind": "signal", "signal": -1}, "signal is out of range: -1"),
        ({"kind": "signal", "signal": 2**63}, "signal is out of range"),
        ({"kind": "signal", "signal": 10**3000}, "signal is out of range"),
    ],
)
def test_a_value_that_does_not_fit_is_named(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(wire.WireError, match=sentence):
        wire.from_json(record(**fields))


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_refused(loss: float) -> None:
    fields = {"first_step": 1, "num_steps": 1, "duration": 1, "loss": loss}

    with pytest.raises(wire.WireError, match="loss is not a finite number"):
        wire.from_json(record("steps.summary", **fields))


@pytest.mark.parametrize("value", [float("nan"), 2**63, None, [], {}, 10**400])
def test_a_label_is_a_plain_value(value: object) -> None:
    with pytest.raises(wire.WireError, match="labels must map names to plain values"):
        wire.from_json(record("run.configured", labels={"team": value}))


def test_a_number_too_large_for_a_float_is_refused() -> None:
    fields = {"first_step": 1, "num_steps": 1, "duration": 1, "loss": 10**400}

    with pytest.raises(wire.WireError, match="loss must be float, got 1000"):
        wire.from_json(record("steps.summary", **fields))


def test_a_subclass_of_a_plain_type_is_taken_as_its_plain_value() -> None:
    class Version(str):
        __slots__ = ()

    envelope = wire.from_json(record("run.configured", versions={"torch": Version("2.13.0+cpu")}))

    assert isinstance(envelope.event, RunConfigured)
    assert envelope.event.versions is not None
    assert type(envelope.event.versions["torch"]) is str
    assert wire.from_fields("fault", {"kind": "signal", "signal": signal.SIGKILL}) == Fault(
        kind="signal", signal=9
    )


def test_half_a_surrogate_does_not_cost_the_event() -> None:
    envelope = wire.from_json(record(kind="storage", message="no file caf\udce9"))

    assert envelope.event == Fault(kind="storage", message="no file caf?")


@pytest.mark.parametrize(
    ("packed", "sentence"),
    [("", "no multiple"), ("AAAA", "no multiple"), ("!", "not base64"), ("A" * 108, "no multiple")],
)
def test_a_block_that_is_no_block_is_refused(packed: str, sentence: str) -> None:
    with pytest.raises(wire.WireError, match=sentence):
        wire.from_json(record("steps", first_step=1, version=1, packed=packed))


def test_sequence_numbers_must_count_the_steps() -> None:
    two = step_blocks.pack([step_blocks.Step(0, 1), step_blocks.Step(1, 1)])

    with pytest.raises(wire.WireError, match="2 records, but 1 sequence numbers"):
        wire.build(ENVELOPE, "steps", {"first_step": 1, "version": 1, "packed": two})


def test_a_block_of_a_newer_layout_says_what_to_upgrade() -> None:
    with pytest.raises(ValueError, match=r"layout 2; known: 1; upgrade the collector"):
        list(step_blocks.unpack(2, b""))


def test_every_event_and_field_is_described() -> None:
    for declaration in [*EVENTS.values(), Envelope]:
        assert declaration.__doc__
        for spec in wire.specs(declaration).values():
            assert spec.described.sentence.endswith("."), (declaration, spec.name)


def test_an_unset_field_stays_unknown_and_is_not_sent() -> None:
    envelope = wire.from_json(record())

    assert envelope.rank is None
    assert envelope.event == Fault(kind="exception")
    assert "rank" not in wire.to_json(envelope)
