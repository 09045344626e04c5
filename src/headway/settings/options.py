"""Each setting as the documentation and the command line show it, with its variables."""

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from headway.settings.declarations import Settings

ALIASES: Mapping[str, str] = {
    "HEADWAY_RECORDER_RUN_ID": "HEADWAY_RUN_ID",
    "HEADWAY_RECORDER_RUN": "HEADWAY_RUN",
    "HEADWAY_RECORDER_SPOOL": "HEADWAY_SPOOL",
    "HEADWAY_AGENT_SPOOL": "HEADWAY_SPOOL",
    "HEADWAY_AGENT_ENDPOINT": "HEADWAY_ENDPOINT",
    "HEADWAY_CLIENT_ENDPOINT": "HEADWAY_ENDPOINT",
    "HEADWAY_AGENT_TOKEN": "HEADWAY_TOKEN",
    "HEADWAY_COLLECTOR_TOKEN": "HEADWAY_TOKEN",
    "HEADWAY_CLIENT_TOKEN": "HEADWAY_TOKEN",
    "HEADWAY_AGENT_CA_FILE": "HEADWAY_CA_FILE",
    "HEADWAY_CLIENT_CA_FILE": "HEADWAY_CA_FILE",
    "HEADWAY_AGENT_LOG_FORMAT": "HEADWAY_LOG_FORMAT",
    "HEADWAY_COLLECTOR_LOG_FORMAT": "HEADWAY_LOG_FORMAT",
    "HEADWAY_DASHBOARD_LOG_FORMAT": "HEADWAY_LOG_FORMAT",
    "HEADWAY_AGENT_LOG_LEVEL": "HEADWAY_LOG_LEVEL",
    "HEADWAY_COLLECTOR_LOG_LEVEL": "HEADWAY_LOG_LEVEL",
    "HEADWAY_DASHBOARD_LOG_LEVEL": "HEADWAY_LOG_LEVEL",
}
"""Short names shared by several processes; the long name wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One setting as the documentation shows it."""

    name: str
    variable: str
    alias: str | None
    kind: type
    default: Any
    sentence: str


def options(declaration: type[Settings]) -> tuple[Option, ...]:
    """Return the settings of one process in the order of their declaration."""
    hints = typing.get_type_hints(declaration, include_extras=True)
    found = []
    for item in fields(declaration):  # type: ignore[arg-type]  # each subclass is a dataclass
        base, sentence = typing.get_args(hints[item.name])
        if typing.get_origin(base) in (typing.Union, types.UnionType):
            (base,) = (part for part in typing.get_args(base) if part is not type(None))
        variable = f"HEADWAY_{declaration.section}_{item.name}".upper()
        found.append(
            Option(
                name=item.name,
                variable=variable,
                alias=ALIASES.get(variable),
                kind=base,
                default=None if item.default is MISSING else item.default,
                sentence=sentence,
            )
        )
    return tuple(found)
