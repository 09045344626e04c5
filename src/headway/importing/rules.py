"""How a format's lines are told: a mark that must be in a line, and the reading of such a line."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from headway.importing.sayings import Saying, StepLine

Read = Callable[[str], "Saying | tuple[Saying, ...] | None"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Lines that contain `mark` are given to `read`; None is a line that only looked like it."""

    mark: str
    read: Read


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of log: its name on the command line and its rules.

    `first_step` is the number that it prints for the first step.
    """

    name: str
    rules: tuple[Rule, ...]
    first_step: int = 1
    stands_on: tuple[str, ...] = ()
    """Formats whose lines are in it, too."""
    rows: re.Pattern[str] | None = None
    """Finds whole lines of progress of the plainest kind, many at a time."""
    line_of: Callable[[tuple[str, ...]], StepLine] | None = None
    """What such a line says, from the groups of `rows`."""
    is_training: bool = True
    """Whether it is a training program's own: at most one such format is read at a time, unless
    it is not known which."""


def number(text: str | None) -> int | None:
    """Return digits, perhaps with thousands commas, as a number."""
    return None if text is None else int(text.replace(",", ""))


def loss_of(text: str | None) -> float | None:
    """Return a printed loss; `nan` is a value, not an unknown."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return None
