"""A post-mortem as it comes over HTTP, back as values: the reverse of `dataclasses.asdict`."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from headway.postmortem.model import Postmortem


def postmortem_of(answer: Mapping[str, Any]) -> Postmortem:
    """Return a post-mortem from the answer of the read API; fields that it does not know are left.

    Raises:
        KeyError: the answer lacks a field, as that of another version may.
    """
    found: Postmortem = _value(Postmortem, answer)
    return found


def _value(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    arguments = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        (kind,) = (one for one in arguments if one is not types.NoneType)
        return _value(kind, value)
    if origin is tuple:
        return tuple(_value(arguments[0], one) for one in value)
    if not dataclasses.is_dataclass(kind):
        return value
    hints = typing.get_type_hints(kind)
    fields = {
        one.name: _value(hints[one.name], value[one.name]) for one in dataclasses.fields(kind)
    }
    return typing.cast(Any, kind)(**fields)
