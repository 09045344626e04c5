"""How a format's lines are told: a mark that must be in a line, and the reading of such a line."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headway.importing.sayings import Saying, StepRun

Read = Callable[[str], "Saying | tuple[Saying, ...] | None"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Lines that contain `mark` are given to `read`; None is a line that only looked like it."""

    mark: str
    read: Read


@dataclass(frozen=True, slots=True)
class Rows:
    """Plain lines of progress many at a time.

    `pattern` finds every line of a text: its first group is a plain one's whole line, the second
    what stands before its own words, the last group a line of any other kind. `once` is in each
    plain line, and twice only where two lines are glued. `run` returns what plain lines say, from
    the columns of `pattern`'s groups, as far as they are plain indeed and alike.
    """

    mark: str
    once: str
    pattern: re.Pattern[str]
    run: Callable[[Sequence[tuple[str, ...]]], StepRun]


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
    rows: "Rows | None" = None
    """How lines of progress of the plainest kind are taken many at a time."""
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
