"""What the engine keeps of its file in memory has an end, and goes while nobody asks."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from headway.storage import store as store_module
from headway.storage.engine_memory import KEPT, trim, used
from headway.storage.store import EventStore
from records import steps

_MB = 2**20
_FILLER = "SELECT range AS n, hash(range) AS h FROM range(2_000_000)"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    opened = EventStore.open(tmp_path / "headway.duckdb")
    yield opened
    opened.close()


@pytest.fixture
def filled(store: EventStore) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of which the engine keeps more than 16 MiB in memory."""
    with store.reading.connection() as connection:
        connection.execute(f"CREATE TABLE filler AS {_FILLER}")
        connection.execute("CHECKPOINT")
        assert connection.execute("SELECT sum(h) FROM filler").fetchone()
        assert used(connection) > 16 * _MB
        yield connection


def _limits(connection: duckdb.DuckDBPyConnection) -> object:
    return connection.execute(
        "SELECT current_setting('memory_limit'), current_setting('max_temp_directory_size')"
    ).fetchone()


def test_what_the_engine_keeps_of_its_file_goes_and_comes_again(
    filled: duckdb.DuckDBPyConnection,
) -> None:
    before = filled.execute("SELECT sum(h), sum(n) FROM filler").fetchone()
    trim(filled, 8 * _MB)
    assert used(filled) <= 8 * _MB
    assert _limits(filled) == ("1.0 GiB", "2.0 GiB")
    assert filled.execute("SELECT sum(h), sum(n) FROM filler").fetchone() == before


def test_memory_that_is_in_use_stays_and_so_does_the_limit(
    filled: duckdb.DuckDBPyConnection,
) -> None:
    filled.execute("BEGIN")
    filled.execute(f"INSERT INTO filler {_FILLER}")  # in no file yet, so in memory alone
    trim(filled, 2 * _MB)
    assert _limits(filled) == ("1.0 GiB", "2.0 GiB")
    filled.execute("COMMIT")
    assert filled.execute("SELECT count(*) FROM filler").fetchone() == (4_000_000,)


def test_little_is_left_alone(filled: duckdb.DuckDBPyConnection) -> None:
    before = used(filled)
    assert before < KEPT
    trim(filled)
    assert used(filled) == before


def test_a_store_that_takes_in_much_trims_while_nobody_asks(
    store: EventStore, filled: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "trim", lambda connection: trim(connection, 8 * _MB))
    for number in range(20):
        store.append([steps(number * 10 + 1, number * 10 + 10)])
    assert used(filled) <= 12 * _MB


def test_a_store_stores_though_its_memory_cannot_be_trimmed(
    store: EventStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: duckdb.DuckDBPyConnection) -> None:
        raise duckdb.InvalidInputException("not now")

    monkeypatch.setattr(store_module, "trim", refuse)
    for number in range(10):
        assert store.append([steps(number * 10 + 1, number * 10 + 10)]).num_stored == 10
    assert "not now" in caplog.text


@pytest.mark.parametrize(
    "setting",
    [
        "enable_external_access = true",
        "lock_configuration = false",
        "allowed_configs = ['threads']",
    ],
)
def test_nothing_but_the_limit_can_be_set(store: EventStore, setting: str) -> None:
    with (
        store.reading.connection() as connection,
        pytest.raises(duckdb.InvalidInputException, match="locked"),
    ):
        connection.execute(f"SET {setting}")
