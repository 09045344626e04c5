"""A file of any released schema is brought to the newest one and keeps everything in it."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import sqlalchemy
from alembic import op
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, Text

from headway.events import Fault, Health, Note, RunStarted
from headway.storage.migrations import migrate, version, versions
from headway.storage.store import EventStore, StoreError
from headway.storage.tables import METADATA
from records import record, steps

RELEASED = sorted((Path(__file__).parents[1] / "data" / "storage").glob("schema_*.sql"))

HELD = [
    record(1, RunStarted(run_name="llama")),
    steps(2, 6),
    record(7, Fault(kind="exception", message="caf\u00e9 'quoted'", step=6)),
    record(10, Note(text="after a gap")),
    record(1, Health(check="nvlink", state="healthy"), producer="cd" * 16, run=None),
]
"""What each of the files holds."""


def file_of(released: Path, folder: Path) -> Path:
    """Write a database of a released schema."""
    path = folder / f"{released.stem}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(released.read_text(encoding="utf-8"))
    return path


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = sqlalchemy.create_engine(f"duckdb:///{tmp_path / 'raw.duckdb'}")
    yield made
    made.dispose()


@pytest.mark.slow
@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.stem)
def test_a_file_of_a_released_schema_keeps_its_events_and_takes_new_ones(
    released: Path, tmp_path: Path
) -> None:
    path = file_of(released, tmp_path)
    for _ in range(2):
        store = EventStore.open(path)
        try:
            assert list(store.envelopes())[: len(HELD)] == HELD
            assert store.num_gaps == 1
            assert [item.reason for item in store.quarantined(9)] == ["unknown event 'x'"]
            again = store.append([*HELD, record(11, Note(text="new"))])
            assert again.num_stored <= 1
        finally:
            store.close()


@pytest.mark.slow
@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.stem)
def test_a_migrated_file_has_the_declared_tables_and_a_version(
    released: Path, tmp_path: Path
) -> None:
    path = file_of(released, tmp_path)
    EventStore.open(path).close()
    engine = sqlalchemy.create_engine(f"duckdb:///{path}")
    with engine.connect() as connection:
        assert version(connection) == versions()[-1]
        assert differences(connection) == []
    engine.dispose()


def differences(connection: sqlalchemy.Connection) -> list[object]:
    """Return how the tables of a database differ from the declared ones, as alembic sees it."""
    context = MigrationContext.configure(
        connection,
        opts={
            # every text is VARCHAR to DuckDB
            "compare_type": lambda _context, _a, _b, found, declared: (
                not isinstance(declared, Text) and str(found) != str(declared)
            ),
            "include_object": lambda _, name, kind, *__: kind != "table" or name in METADATA.tables,
        },
    )
    return list(compare_metadata(context, METADATA))


def test_each_run_and_node_of_a_producer_keeps_the_numbers_known_before(engine: Engine) -> None:
    with engine.begin() as connection:
        migrate(connection, to="0002")
        connection.exec_driver_sql(
            "INSERT INTO events (producer, run, name, fields) VALUES "
            "('a', 'one', 'x', ''), ('a', 'one', 'x', ''), "
            "('a', NULL, 'x', ''), ('b', 'two', 'x', '')"
        )
        connection.exec_driver_sql(
            "INSERT INTO intervals VALUES ('a', 1, 7), ('a', 9, 9), ('b', 1, 2), ('expired', 1, 5)"
        )
        migrate(connection)
        found = connection.exec_driver_sql("SELECT * FROM intervals ORDER BY ALL").fetchall()
    assert [tuple(row) for row in found] == [
        ("one", "a", 1, 7),
        ("one", "a", 9, 9),
        ("two", "b", 1, 2),
        (None, "a", 1, 7),
        (None, "a", 9, 9),
        (None, "expired", 1, 5),
    ]


def test_an_empty_file_gets_the_declared_tables_with_their_comments(engine: Engine) -> None:
    with engine.begin() as connection:
        migrate(connection)
        assert set(METADATA.tables) < set(sqlalchemy.inspect(connection).get_table_names())
        assert [item for item in differences(connection) if "comment" not in str(item[0])] == []


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine.begin() as connection:
        migrate(connection, to="0001")
    monkeypatch.setattr("alembic.op.create_table", _refused_after(2))
    with pytest.raises(RuntimeError, match="power"), engine.begin() as connection:
        migrate(connection)
    monkeypatch.undo()
    with engine.connect() as connection:
        assert version(connection) == "0001"
        assert "runs" not in sqlalchemy.inspect(connection).get_table_names()


def _refused_after(count: int) -> object:
    real = op.create_table
    calls = []

    def create(*arguments: object, **named: object) -> object:
        calls.append(arguments)
        if len(calls) > count:
            raise RuntimeError("the power is gone")
        return real(*arguments, **named)  # type: ignore[arg-type]

    return create


def test_every_schema_but_the_newest_has_its_file() -> None:
    assert [path.stem.removeprefix("schema_") for path in RELEASED] == [*versions()[:-1]]


def test_a_file_of_a_newer_schema_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "newer.duckdb"
    EventStore.open(path).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match=r"its schema is 9999.*upgrade headway"):
        EventStore.open(path)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT * FROM alembic_version").fetchall() == [("9999",)]


def test_another_programs_database_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "foreign.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE invoices (number INTEGER)")
    with pytest.raises(StoreError, match=r"holds the tables invoices.*another program"):
        EventStore.open(path)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SHOW TABLES").fetchall() == [("invoices",)]
