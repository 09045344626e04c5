"""How an envelope becomes flat attributes and back, checked against the declarations.

The spool (JSON), OTLP attributes and the store use the same flat form: a wire name and a mapping
of field names to plain values. `None` is left out; a field this version does not know is ignored,
so that a newer producer can still be stored.
"""

import base64
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, NamedTuple

from headway import step_blocks
from headway.blocks import Block, Column
from headway.events import EVENTS, Described, Envelope, Event, Steps, StepsSummary

Value = str | int | float | bool | bytes | tuple[str, ...] | Mapping[str, str | int | float | bool]

PREFIX = "headway."
"""Namespace of the event names and of the envelope's attributes on the wire."""
PRODUCER_FIELDS = ("producer", "anchor", "run", "node", "boot_id")
"""Envelope fields that travel once per producer, in the OTLP resource."""
RECORD_FIELDS = ("first_sequence", "last_sequence", "attempt", "rank", "monotonic")
"""Envelope fields that travel with each record; `wall` is the record's own time stamp."""
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_INT64 = range(_LOWEST, _HIGHEST + 1)


class WireError(ValueError):
    """An event that the contract does not declare or whose fields do not fit it."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """What the contract declares about one field."""

    name: str
    kind: type
    optional: bool
    described: Described


class _Rule(NamedTuple):
    """One field as `_checked` asks for it; values of another exact type are looked at closely."""

    name: str
    kind: type
    lowest: int
    choices: tuple[str, ...]
    spec: FieldSpec
    missing: Any


_REQUIRED = object()
_SPECS: dict[type, Mapping[str, FieldSpec]] = {}
_RULES: dict[tuple[type, tuple[str, ...]], tuple[_Rule, ...]] = {}


def specs(declaration: type) -> Mapping[str, FieldSpec]:
    """Return the declared fields of an event class or of the envelope, in order."""
    if declaration not in _SPECS:
        _SPECS[declaration] = _read_specs(declaration)
    return _SPECS[declaration]


def _read_specs(declaration: type) -> Mapping[str, FieldSpec]:
    hints = typing.get_type_hints(declaration, include_extras=True)
    found = {}
    for item in fields(declaration):
        hint = hints[item.name]
        if typing.get_origin(hint) is not typing.Annotated:
            continue
        base, described = typing.get_args(hint)
        if typing.get_origin(base) in (typing.Union, types.UnionType):
            (base,) = (part for part in typing.get_args(base) if part is not type(None))
        kind = typing.get_origin(base) or base
        optional = item.default is not MISSING
        found[item.name] = FieldSpec(item.name, kind, optional, described)
    return found


def to_fields(event: Event) -> dict[str, Value]:
    """Return the known fields of an event; an empty list that it has by default is left out."""
    left_out = EMPTY_BY_DEFAULT.get(type(event), frozenset())
    return {
        name: value
        for name in specs(type(event))
        if (value := getattr(event, name)) is not None and (value != () or name not in left_out)
    }


EMPTY_BY_DEFAULT: Mapping[type, frozenset[str]] = {
    kind: frozenset(item.name for item in fields(kind) if item.default == ())  # type: ignore[arg-type]  # each is a dataclass
    for kind in EVENTS.values()
}
"""Lists of each kind of event that are left out where they are empty."""


def from_fields(name: str, values: Mapping[str, Any]) -> Event:
    """Build the event that a wire name and plain values describe.

    Raises:
        WireError: unknown event, missing field, or a value that does not fit its declaration.
    """
    kind = EVENTS.get(name)
    if kind is None:
        raise WireError(f"unknown event {name!r}; known: {', '.join(EVENTS)}")
    return kind(**_checked(kind, name, values))


def build(envelope: Mapping[str, Any], name: str, values: Mapping[str, Any]) -> Envelope:
    """Build an envelope from plain values.

    Raises:
        WireError: as `from_fields`, or sequence numbers that do not fit the event.
    """
    event = from_fields(name, values)
    return _built(_checked(Envelope, "envelope", envelope), event)


class Producer:
    """The envelope fields that all records of a producer share, checked once for all of them."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Check the values of `PRODUCER_FIELDS`; `build` tells what is wrong with them."""
        self._values = values
        try:
            self._checked = _checked(Envelope, "envelope", values, PRODUCER_FIELDS)
        except WireError:
            self._checked = {}

    def build(self, record: Mapping[str, Any], name: str, values: Mapping[str, Any]) -> Envelope:
        """Build an envelope as `headway.wire.build` does; `record` has the other fields.

        Raises:
            WireError: as `headway.wire.build`.
        """
        if not self._checked:
            return build({**self._values, **record}, name, values)
        event = from_fields(name, values)
        checked = _checked(Envelope, "envelope", record, _OTHER_FIELDS)
        return _built({**self._checked, **checked}, event)

    def build_alike(
        self, record: Mapping[str, Column], name: str, values: Mapping[str, Column], count: int
    ) -> Block | None:
        """Build many envelopes of one kind, each as `build` builds it.

        None where one of them may not fit: then each has to be looked at.
        """
        kind = EVENTS.get(name)
        if kind is None or kind is Steps or not self._checked:
            return None
        own = _checked_columns(Envelope, record, _OTHER_FIELDS)
        fields_ = _checked_columns(kind, values, ())
        if own is None or fields_ is None:
            return None
        if own.pop("last_sequence").of(count) != own["first_sequence"].of(count):
            return None
        return Block(producer=self._checked, kind=kind, count=count, record=own, fields=fields_)


_OTHER_FIELDS = (*RECORD_FIELDS, "wall")


def _built(envelope: Mapping[str, Any], event: Event) -> Envelope:
    if isinstance(event, Steps) and event.version == step_blocks.COLUMNS:
        event = _in_records(event)
    built = Envelope(**envelope, event=event)
    count = built.last_sequence - built.first_sequence + 1
    if count < 1:
        raise WireError(f"sequence runs from {built.first_sequence} to {built.last_sequence}")
    if isinstance(event, Steps):
        try:
            num_steps = step_blocks.check(event.version, event.packed)
        except ValueError as error:
            raise WireError(str(error)) from error
    elif isinstance(event, StepsSummary) and count > 1:
        num_steps = event.num_steps
    else:
        num_steps = 1
    if num_steps != count:
        raise WireError(f"{event.name}: {num_steps} records, but {count} sequence numbers")
    return built


def in_columns(event: Steps) -> Steps:
    """Return the same steps in the layout that compresses best; `build` takes either."""
    packed = step_blocks.to_columns(event.packed)
    return replace(event, version=step_blocks.COLUMNS, packed=packed)


def _in_records(event: Steps) -> Steps:
    try:
        packed = step_blocks.from_columns(event.packed)
    except ValueError as error:
        raise WireError(str(error)) from error
    return replace(event, version=step_blocks.VERSION, packed=packed)


def trim(envelope: Envelope, first: int, last: int) -> Envelope:
    """Keep only the records with sequence numbers `first` to `last`, which it contains.

    Example: 100 steps sent again as 51-150 after 1-100 are stored as 101-150.
    """
    if (first, last) == (envelope.first_sequence, envelope.last_sequence):
        return envelope
    event = envelope.event
    begin, end = first - envelope.first_sequence, last - envelope.first_sequence
    monotonic = envelope.monotonic
    if isinstance(event, Steps):
        packed = step_blocks.cut(event.packed, begin, end)
        newest = step_blocks.Step(*step_blocks.LAYOUT.unpack(packed[-step_blocks.LAYOUT.size :]))
        monotonic = newest.start + newest.duration
        event = replace(event, first_step=event.first_step + begin, packed=packed)
    elif isinstance(event, StepsSummary):
        cut_before = event.duration * begin // event.num_steps
        cut_after = event.duration * (end + 1) // event.num_steps
        monotonic -= event.duration - cut_after
        event = StepsSummary(
            first_step=event.first_step + begin,
            num_steps=end - begin + 1,
            duration=cut_after - cut_before,
        )
    return replace(
        envelope,
        first_sequence=first,
        last_sequence=last,
        wall=envelope.wall + monotonic - envelope.monotonic,
        monotonic=monotonic,
        event=event,
    )


def to_json(envelope: Envelope) -> dict[str, Any]:
    """Return an envelope as one flat JSON object: its own fields, `name`, and `fields`."""
    values = {
        name: value for name in specs(Envelope) if (value := getattr(envelope, name)) is not None
    }
    return {**values, "name": envelope.event.name, "fields": json_fields(envelope.event)}


def json_fields(event: Event) -> dict[str, Any]:
    """Return the fields of an event with bytes as base64."""
    return {
        name: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for name, value in to_fields(event).items()
    }


def from_json(record: Mapping[str, Any]) -> Envelope:
    """Build the envelope that `to_json` wrote.

    Raises:
        WireError: not such an object, or as `build`.
    """
    values, name = record.get("fields"), record.get("name")
    if not isinstance(values, Mapping) or not isinstance(name, str):
        raise WireError("a record needs 'name' and 'fields'")
    envelope = {key: value for key, value in record.items() if key not in ("name", "fields")}
    return build(envelope, name, decode_fields(name, values))


def decode_fields(name: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Turn base64 back into bytes where the declaration asks for bytes."""
    kind = EVENTS.get(name)
    try:
        packed = {
            field: base64.b64decode(value, validate=True)
            for field, value in values.items()
            if kind is not None
            and field in specs(kind)
            and specs(kind)[field].kind is bytes
            and isinstance(value, str)
        }
    except ValueError as error:
        raise WireError(f"{name}: a field is not base64: {error}") from error
    return {**values, **packed}


def _checked(
    declaration: type, name: str, values: Mapping[str, Any], only: tuple[str, ...] = ()
) -> dict[str, Any]:
    # Every record passes here, and most values are fine as they are: those take the short way.
    rules = _RULES.get((declaration, only)) or _rules(declaration, only)
    found = {}
    value: Any
    for field, kind, lowest, choices, spec, missing in rules:
        value = values.get(field)
        if value is None:
            if missing is _REQUIRED:
                raise WireError(f"{name}: field {field!r} is missing")
            found[field] = missing
        elif (
            (kind is int and type(value) is int and lowest <= value <= _HIGHEST)
            or (kind is str and type(value) is str and value.isascii() and not choices)
            or (kind is bytes and type(value) is bytes)
        ):
            found[field] = value
        else:
            found[field] = _value(name, spec, value)
    return found


def _checked_columns(
    declaration: type, columns: Mapping[str, Column], only: tuple[str, ...]
) -> dict[str, Column] | None:
    """Check columns as `_checked` checks values; None where one of them may not fit."""
    found = {}
    for rule in _RULES.get((declaration, only)) or _rules(declaration, only):
        column = columns.get(rule.name)
        if column is None:
            if rule.missing is _REQUIRED:
                return None
            found[rule.name] = Column(rule.missing, None)
            continue
        try:
            checked = _checked_column(declaration.__name__, rule, column)
        except WireError:
            return None
        if checked is None:
            return None
        found[rule.name] = checked
    return found


def _checked_column(name: str, rule: _Rule, column: Column) -> Column | None:
    values = column.values
    if values is None:
        return Column(_value(name, rule.spec, column.constant), None)
    if not isinstance(values, list):
        lowest, highest = int(values.min()), int(values.max())
        fits = rule.kind is int and rule.lowest <= lowest and highest <= _HIGHEST
        return column if fits else None
    if set(map(type, values)) != {rule.kind}:
        return None
    if rule.kind is int:
        fits = rule.lowest <= min(values) and max(values) <= _HIGHEST
    elif rule.kind is str:
        fits = all(_value(name, rule.spec, value) == value for value in set(values))
    elif rule.kind is float:
        fits = all(map(math.isfinite, values))
    else:
        fits = rule.kind is bool
    return column if fits else None


def _rules(declaration: type, only: tuple[str, ...]) -> tuple[_Rule, ...]:
    defaults = {item.name: item.default for item in fields(declaration)}
    rules = []
    for name, spec in specs(declaration).items():
        if only and name not in only:
            continue
        missing = None if defaults[name] is MISSING else defaults[name]
        if not spec.optional and not (declaration is Envelope and name == "run"):
            missing = _REQUIRED
        lowest = _LOWEST if spec.described.signed else 0
        rules.append(_Rule(name, spec.kind, lowest, spec.described.choices, spec, missing))
    _RULES[declaration, only] = tuple(rules)
    return _RULES[declaration, only]


def _value(name: str, spec: FieldSpec, value: Any) -> Any:
    kind: type[Any] = spec.kind
    value = _plain(value)
    if kind is float and type(value) is int:
        value = float(value) if value in _INT64 else value
    if kind is tuple and isinstance(value, list | tuple):
        value = tuple(map(_plain, value))
    if kind.__name__ == "Mapping":
        if not isinstance(value, Mapping) or not all(
            isinstance(key, str) and _is_scalar(item) for key, item in value.items()
        ):
            raise WireError(
                f"{name}: {spec.name} must map names to plain values, got {value!r:.80}"
            )
        return {_plain(key): _plain(item) for key, item in value.items()}
    if type(value) is not kind or (kind is tuple and any(type(item) is not str for item in value)):
        raise WireError(f"{name}: {spec.name} must be {kind.__name__}, got {value!r:.80}")
    if kind is int and (value not in _INT64 or (value < 0 and not spec.described.signed)):
        raise WireError(f"{name}: {spec.name} is out of range: {value!r:.80}")
    if kind is float and not math.isfinite(value):
        raise WireError(f"{name}: {spec.name} is not a finite number: {value!r}")
    if spec.described.choices and value not in spec.described.choices:
        known = ", ".join(spec.described.choices)
        raise WireError(f"{name}: unknown {spec.name} {value!r:.80}; known: {known}")
    return value


def _is_scalar(value: Any) -> bool:
    value = _plain(value)
    if type(value) is int:
        return value in _INT64
    return type(value) in (str, bool) or (type(value) is float and math.isfinite(value))


def _plain(value: Any) -> Any:
    """Return the plain value of a subclass: torch's version, numpy's float, a signal's number.

    What UTF-8 cannot hold, such as half a surrogate from an undecodable file name, is replaced.
    """
    if isinstance(value, str):
        return str.encode(value, "utf-8", "replace").decode()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return int(value) if isinstance(value, int) else float(value)
