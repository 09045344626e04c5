"""What a saved question is, and how the values of its parameters are read.

Values are bound by the engine; none ever becomes part of the statement's text.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Value = str | int | None
KINDS = ("text", "integer", "time")
"""Kinds of parameters; a time is UTC ns."""
_INT64 = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A value that a question leaves open; without a default it is left open in the answer, too."""

    name: str
    sentence: str
    kind: str = "text"
    default: Value = None
    choices: tuple[str, ...] = ()
    lowest: int = 0
    highest: int = _INT64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A saved question: `asks` is it in words, `notes` how its answer is to be read."""

    name: str
    title: str
    asks: str
    notes: str
    parameters: tuple[Parameter, ...]
    sql: str


class QuestionRefused(ValueError):  # noqa: N818  # the condition reads as a name
    """A question or a value of a parameter that is not one; says why and what to do."""

    def __init__(self, sentence: str, next_step: str) -> None:
        """Keep both parts for whoever shows them apart."""
        super().__init__(sentence)
        self.next_step = next_step


def parsed(pairs: Iterable[str]) -> dict[str, str]:
    """Return values by name from `name=value` texts.

    Raises:
        QuestionRefused: a text without `=`, or a name that is given twice.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise QuestionRefused(f"{pair!r:.80} is no parameter", "Write it as name=value.")
        if name in found:
            raise QuestionRefused(f"the parameter {name!r:.80} is given twice", "Give it once.")
        found[name] = value
    return found


def bound(question: Question, given: Mapping[str, object]) -> dict[str, Value]:
    """Return a value for every parameter of a question: the one given, else its default.

    Raises:
        QuestionRefused: an unknown parameter, or a value that does not fit.
    """
    declared = {one.name: one for one in question.parameters}
    for name in given:
        if name not in declared:
            raise QuestionRefused(
                f"{question.name} has no parameter {name!r:.80}",
                f"It has: {', '.join(declared)}." if declared else "It has none.",
            )
    return {
        name: _value(parameter, given[name]) if name in given else parameter.default
        for name, parameter in declared.items()
    }


def _value(parameter: Parameter, given: object) -> Value:
    if given is None or given == "":
        return parameter.default
    if parameter.kind == "text":
        text = str(given)
        if parameter.choices and text not in parameter.choices:
            raise QuestionRefused(
                f"unknown {parameter.name} {text!r:.80}",
                f"Choose one of: {', '.join(parameter.choices)}.",
            )
        return text
    number = _integer(given)
    if number is None or not parameter.lowest <= number <= parameter.highest:
        what = "a time in UTC ns" if parameter.kind == "time" else "a whole number"
        raise QuestionRefused(
            f"{parameter.name} must be {what} from {parameter.lowest} to {parameter.highest}, "
            f"got {given!r:.80}",
            parameter.sentence,
        )
    return number


def _integer(given: object) -> int | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, int):
        return given
    text = str(given).strip()
    digits = text.removeprefix("-")
    # what is longer than any of 64 bits is none, and reading it would take long
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else None
