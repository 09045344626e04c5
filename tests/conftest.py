"""What holds for every test."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# No test judges speed: a busy machine must not make a property test fail.
settings.register_profile(
    "headway", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("headway")


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the developer's shell exports for real runs away from the tests."""
    for name in list(os.environ):
        if name.startswith("HEADWAY_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _own_main_module() -> Iterator[None]:
    """Take back `__main__`, which Streamlit's tests replace: a process started later imports it."""
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before
