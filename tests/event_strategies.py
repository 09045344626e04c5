"""Hypothesis strategies for every declared event, derived from the declarations."""

from typing import Any

from hypothesis import strategies as st

from headway import step_blocks, wire
from headway.events import EVENTS, Envelope, Event, Steps, StepsSummary

_NATURAL = st.integers(0, 2**53)
_SIGNED = st.integers(-(2**63), 2**63 - 1)
_FINITE = st.floats(allow_nan=False, allow_infinity=False)
_TEXT = st.text(max_size=20)
_SCALARS = st.one_of(_TEXT, _NATURAL, _FINITE, st.booleans())

STEPS = st.lists(
    st.builds(
        step_blocks.Step,
        start=st.integers(0, 2**62),
        duration=st.integers(0, 2**60),
        data_wait=_NATURAL,
        loss=st.one_of(st.just(0.5), _FINITE),
        samples=st.integers(-1, 2**53),
    ),
    min_size=1,
    max_size=30,
)


def _values(spec: wire.FieldSpec) -> st.SearchStrategy[Any]:
    if spec.described.choices:
        return st.sampled_from(spec.described.choices)
    plain = {
        bool: st.booleans(),
        bytes: st.binary(max_size=40),
        float: _FINITE,
        int: _SIGNED if spec.described.signed else _NATURAL,
        str: _TEXT,
        tuple: st.lists(_TEXT, max_size=4).map(tuple),
    }
    return plain.get(spec.kind, st.dictionaries(_TEXT, _SCALARS, max_size=4))


def _fields(declaration: type) -> st.SearchStrategy[dict[str, Any]]:
    specs = wire.specs(declaration).values()
    required = {spec.name: _values(spec) for spec in specs if not spec.optional}
    optional = {spec.name: _values(spec) for spec in specs if spec.optional}
    return st.fixed_dictionaries(required, optional=optional)


def events() -> st.SearchStrategy[Event]:
    """Return any declared event."""
    others = [kind for kind in EVENTS.values() if kind is not Steps]
    blocks = st.builds(
        lambda first, steps: Steps(
            first_step=first, version=step_blocks.VERSION, packed=step_blocks.pack(steps)
        ),
        _NATURAL,
        STEPS,
    )
    return st.one_of(
        blocks, *(_fields(kind).map(lambda fields, kind=kind: kind(**fields)) for kind in others)
    )


def envelopes(event: st.SearchStrategy[Event] | None = None) -> st.SearchStrategy[Envelope]:
    """Return any envelope whose sequence numbers fit its event."""

    def seal(event: Event, fields: dict[str, Any]) -> Envelope:
        records = 1
        if isinstance(event, Steps):
            records = step_blocks.check(event.version, event.packed)
        elif isinstance(event, StepsSummary) and event.num_steps > 1:
            records = event.num_steps
        last = fields["first_sequence"] + records - 1
        return Envelope(**{**fields, "run": "run", "last_sequence": last}, event=event)

    return st.builds(seal, events() if event is None else event, _fields(Envelope))
