"""What holds for every test."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
from hypothesis import HealthCheck, settings

# No test judges speed: a busy machine must not make a property test fail.
settings.register_profile(
    "headway", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("fast", settings.get_profile("headway"), max_examples=20)
settings.load_profile("headway")
_END = "-----END CERTIFICATE-----"


@pytest.fixture(autouse=True, scope="session")
def _one_empty_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Begin each new store as a copy of one that was made: its tables and 300 comments take long.

    Opening is not cut short: the copy is opened like any database.
    """
    module = sys.modules.get("headway.storage.store")
    if module is None:  # no test of this session has a store
        yield
        return
    store = module.EventStore
    real, made = store.open, tmp_path_factory.mktemp("database") / "empty.duckdb"

    def open_copy(path: Path) -> object:
        if not made.exists():
            real(made).close()
        if not path.exists() and path.parent.is_dir():
            shutil.copyfile(made, path)
        return real(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "open", open_copy)
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let HTTP clients read one authority and not 140: a new client takes 25 ms with all of them.

    No test speaks to a server that these authorities vouch for.
    """
    first, end, _ = Path(certifi.where()).read_text(encoding="utf-8").partition(_END)
    path = tmp_path_factory.mktemp("authority") / "one.pem"
    path.write_text(first + end + "\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield


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
