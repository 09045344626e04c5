"""Values that user programs hand over, made plain or named without reading a tensor.

Reading a GPU tensor, even to print it, makes the training wait for the GPU.
"""

import numbers

LONGEST_TEXT = 16 * 1024
"""Characters that an event keeps of one text."""


def plain_int(value: object) -> int | None:
    """Return a whole number from 0 up as Python's own; `None` for anything else."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        number = int(value)
        return number if number >= 0 else None
    return None


def named(value: object) -> str:
    """Return a plain value as text, of anything else only the type."""
    if isinstance(value, str | int | float | None):
        return repr(value)[:100]
    return f"a {qualified(type(value))}"


def qualified(kind: type) -> str:
    """Return the name of a class, with its module unless it is built in."""
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"
