"""The versions of NVRx that the tests run with: the installed one, and those beside it."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(sys.prefix) / "nvrx"
"""Where scripts/test installs them."""
INSTALLED = "installed"


def python_path(version: str) -> list[str]:
    """Return what to put before everything else in PYTHONPATH."""
    if version == INSTALLED:
        return []
    return [str(FOLDER / version), str(FOLDER / "common")]


def versions(*names: str) -> list[object]:
    """Return parameters for these versions; one that is not there is skipped and says so."""
    return [pytest.param(name, marks=_missing(name)) for name in names]


def _missing(name: str) -> list[pytest.MarkDecorator]:
    if all(Path(folder).is_dir() for folder in python_path(name)):
        return []
    return [pytest.mark.skip(reason=f"NVRx {name} is not in {FOLDER}; scripts/test installs it")]
