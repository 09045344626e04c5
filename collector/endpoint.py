"""One declaration per endpoint, from which routing, checks and the OpenAPI document derive.

What a request may say is a dataclass: a field per parameter, with its type, its default and an
`Asked` that says the rest. A field named in the path is taken from it; the others come from the
query, or from the JSON body of a POST.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPMethod
from typing import Any, Self

import pyarrow  # type: ignore[import-untyped]  # ships no types

from headway.collector.service import Service

_LONGEST_NUMBER = 19
_INT64_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is declared about one parameter beside its type and its default."""

    sentence: str
    lowest: int = 0
    highest: int = _INT64_MOST
    choices: tuple[str, ...] = ()
    example: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of an endpoint, read from its declaration."""

    name: str
    kind: type
    many: bool
    required: bool
    default: Any
    asked: Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an endpoint answers: JSON, and where it is bulk the same rows as an Arrow table.

    `version` changes when the answer may change; None takes that of the content itself. `as_of` is
    the time in UTC ns up to which the answer is true: content that holds still keeps an older one.
    """

    content: Callable[[], Mapping[str, Any]]
    table: Callable[[], pyarrow.Table] | None = None
    version: str | None = None
    as_of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One endpoint; `handler` is called in a thread, with the service and what is asked."""

    method: HTTPMethod
    path: str
    handler: Callable[[Service, Any], Answer]
    result: Mapping[str, Any]
    bulk: bool = False

    @classmethod
    def get(
        cls,
        path: str,
        handler: Callable[[Service, Any], Answer],
        result: Mapping[str, Any],
        *,
        bulk: bool = False,
    ) -> Self:
        """Return one that only answers."""
        return cls(method=HTTPMethod.GET, path=path, handler=handler, result=result, bulk=bulk)

    @classmethod
    def post(
        cls,
        path: str,
        handler: Callable[[Service, Any], Answer],
        result: Mapping[str, Any],
        *,
        bulk: bool = False,
    ) -> Self:
        """Return one that takes a JSON body."""
        return cls(method=HTTPMethod.POST, path=path, handler=handler, result=result, bulk=bulk)

    @property
    def declaration(self) -> type:
        """Return the dataclass of what may be asked."""
        found: type = typing.get_type_hints(self.handler)["asked"]
        return found

    @property
    def name(self) -> str:
        """Return the name of the endpoint for programs."""
        return self.handler.__name__

    @property
    def sentence(self) -> str:
        """Return what it does."""
        return (self.handler.__doc__ or "").strip()

    @property
    def in_path(self) -> Sequence[str]:
        """Return the names of the parameters that the path holds."""
        return [part.partition("}")[0] for part in self.path.split("{")[1:]]


class BadQuestion(ValueError):  # noqa: N818  # the condition reads as a name
    """A request that cannot be understood; says why and what to do."""

    def __init__(self, sentence: str, next_step: str) -> None:
        """Keep both parts for the answer."""
        super().__init__(sentence)
        self.next_step = next_step


class NotKnown(LookupError):  # noqa: N818  # the condition reads as a name
    """Something was asked for that is not here; says what and how to find those that are."""

    def __init__(self, sentence: str, next_step: str) -> None:
        """Keep both parts for the answer."""
        super().__init__(sentence)
        self.next_step = next_step


@cache
def parameters(declaration: type) -> tuple[Parameter, ...]:
    """Return the parameters that a dataclass declares, in order."""
    hints = typing.get_type_hints(declaration, include_extras=True)
    found = []
    for item in dataclasses.fields(declaration):
        base, asked = typing.get_args(hints[item.name])
        if typing.get_origin(base) in (typing.Union, types.UnionType):
            (base,) = (part for part in typing.get_args(base) if part is not type(None))
        many = typing.get_origin(base) is tuple
        required = item.default is dataclasses.MISSING
        found.append(
            Parameter(
                name=item.name,
                kind=typing.get_args(base)[0] if many else typing.get_origin(base) or base,
                many=many,
                required=required,
                default=None if required else item.default,
                asked=asked,
            )
        )
    return tuple(found)


def understood(endpoint: Endpoint, given: Mapping[str, Sequence[Any]]) -> Any:
    """Return what was asked as an instance of the endpoint's declaration.

    Raises:
        BadQuestion: an unknown, missing or repeated parameter, or a value that does not fit.
    """
    declared = {one.name: one for one in parameters(endpoint.declaration)}
    for name in given:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise BadQuestion(f"unknown parameter {name!r:.80}", f"Known here: {known}.")
    values: dict[str, Any] = {}
    for name, parameter in declared.items():
        texts = given.get(name, ())
        if not texts:
            if parameter.required:
                raise _not_text(parameter, None)
            values[name] = parameter.default
        elif parameter.many:
            values[name] = tuple(_value(parameter, text) for text in texts)
        elif len(texts) > 1:
            raise BadQuestion(f"{name} is given {len(texts)} times", "Give it once.")
        else:
            values[name] = _value(parameter, texts[0])
    return endpoint.declaration(**values)


def _value(parameter: Parameter, given: Any) -> Any:
    asked = parameter.asked
    if parameter.kind is int:
        wanted = f"{parameter.name} must be a number from {asked.lowest} to {asked.highest}"
        number = _number(given)
        if number is None or not asked.lowest <= number <= asked.highest:
            raise BadQuestion(f"{wanted}, got {given!r:.80}", _advice(parameter))
        return number
    if parameter.kind is dict:
        return _scalars(parameter, given)
    if not isinstance(given, str) or not given.strip():
        raise _not_text(parameter, given)
    if asked.choices and given not in asked.choices:
        raise BadQuestion(f"unknown {parameter.name} {given!r:.80}", _advice(parameter))
    return given


def _scalars(parameter: Parameter, given: Any) -> dict[str, Any]:
    """Return an object of texts, numbers, flags and unknown values."""
    if not isinstance(given, dict):
        raise BadQuestion(
            f"{parameter.name} must be an object, got {given!r:.80}", _advice(parameter)
        )
    for name, value in given.items():
        fits = value is None or isinstance(value, str | float)
        if not fits and not (isinstance(value, int) and abs(value) <= _INT64_MOST):
            raise BadQuestion(
                f"{parameter.name} of {name!r:.80} must be a text, a number or a flag, "
                f"got {value!r:.80}",
                _advice(parameter),
            )
    return given


def _not_text(parameter: Parameter, given: Any) -> BadQuestion:
    return BadQuestion(f"{parameter.name} must be a text, got {given!r:.80}", _advice(parameter))


def _advice(parameter: Parameter) -> str:
    """Return what to do about a value that does not fit."""
    if parameter.asked.choices:
        return f"Choose one of: {', '.join(parameter.asked.choices)}."
    if parameter.required:
        return f"Give {parameter.name}. {parameter.asked.sentence}"
    usual = f" for {parameter.default}" if parameter.default else ""
    return f"Leave {parameter.name} out{usual}, or correct it. {parameter.asked.sentence}"


def _number(given: Any) -> int | None:
    """Return a number that JSON or a query gives, or None."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if isinstance(given, str) and given.isascii() and given.removeprefix("-").isdecimal():
        return int(given) if len(given) <= _LONGEST_NUMBER else None
    return None
