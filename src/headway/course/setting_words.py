"""Settings as people read them: the name of one, and its value with its unit."""

from collections.abc import Mapping
from typing import Any

from headway.wording import count, duration, plain


def setting_name(field: str, name: str | None) -> str:
    """Return what a setting is called: `Options: learning rate`."""
    return plain(field).capitalize() if name is None else f"{plain(field).capitalize()}: {name}"


def setting_value(field: str, value: Any, units: Mapping[str, str]) -> str:
    """Return the value of a setting; `units` are those of the fields, and None is empty."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    unit = units.get(field)
    if unit == "ns" and isinstance(value, int):
        return duration(value)
    if isinstance(value, float):
        text = f"{value:.12g}"
    else:
        text = count(value) if type(value) is int else str(value)
    if unit and value == 1:
        unit = unit.removesuffix("s")
    return f"{text} {unit}" if unit else text
