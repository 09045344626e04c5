"""Modules that a measured library imports and never needs here."""

import sys
from collections.abc import Iterable
from types import ModuleType
from unittest.mock import MagicMock


class _Absent(ModuleType):
    """A module that has every name."""

    __path__: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> MagicMock:
        return MagicMock(name=name)


def replace(names: Iterable[str]) -> None:
    """Let modules be imported as empty ones that have every name."""
    sys.modules.update((name, _Absent(name)) for name in names)
