"""Values that user programs hand over, made plain or named without reading a tensor.

Reading a GPU tensor, even to print it, makes the training wait for the GPU.
"""

import math
import numbers
from collections.abc import Iterator, Mapping
from typing import Any

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


def plain_real(value: object) -> float | None:
    """Return a real number as Python's own, NaN and infinities included; `None` for others."""
    if not isinstance(value, numbers.Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def plain_fields(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the known values of an event's fields, those of other libraries as Python's own.

    What cannot be had without reading a tensor, and what is not finite, is left out and named.
    """
    found, left_out = {}, []
    for name, value in values.items():
        unreadable = next((part for part in _parts(value) if not _is_readable(part)), None)
        if unreadable is not None:
            left_out.append(f"{name} is {named(unreadable)}, which is not read")
            continue
        plain = _plain(value)
        if isinstance(plain, float) and not math.isfinite(plain):
            left_out.append(f"{name} is {plain}")
        elif plain is not None:
            found[name] = plain
    return found, left_out


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value[:LONGEST_TEXT]
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else plain_real(value)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, tuple | list):
        yield from value
    else:
        yield value


def _is_readable(value: Any) -> bool:
    return value is None or isinstance(value, str | bytes | bytearray | numbers.Real)
