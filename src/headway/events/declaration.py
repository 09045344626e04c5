"""How an event is declared: as a class whose fields say what they are and in which unit."""

from dataclasses import dataclass
from typing import ClassVar

Scalar = str | int | float | bool


NANOSECONDS = "ns"
"""Unit of every time and duration."""


@dataclass(frozen=True, slots=True)
class Described:
    """One sentence about a field, its unit, and its values where they are a closed set.

    Integers are non-negative unless `signed`.
    """

    sentence: str
    unit: str | None = None
    choices: tuple[str, ...] = ()
    signed: bool = False


class Event:
    """One thing that happened; subclasses declare the kinds."""

    __slots__ = ()
    name: ClassVar[str]
