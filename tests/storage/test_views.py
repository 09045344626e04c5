"""Every view can be asked, says what its columns mean, and shows what is stored."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headway.events import (
    Fault,
    GpuXid,
    Health,
    Note,
    StepsSummary,
)
from headway.storage.store import EventStore
from headway.storage.tables import DERIVED, EVENTS, METADATA
from headway.storage.views import View, readable, views
from records import ANCHOR, SECOND, record, steps


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    with closing(EventStore.open(tmp_path / "events.duckdb")) as opened:
        yield opened


def asked(store: EventStore, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in store.reading.sql.ask(statement).table.to_pylist()]


@pytest.mark.parametrize("view", views(), ids=lambda view: view.name)
def test_a_view_has_the_declared_columns_with_their_comments(view: View, store: EventStore) -> None:
    answer = store.reading.sql.ask(f"FROM {view.name}").table
    assert answer.column_names == list(view.columns)
    with store._engine.connect() as connection:
        said = connection.exec_driver_sql(
            f"SELECT column_name, comment FROM duckdb_columns() WHERE table_name = '{view.name}'"  # noqa: S608
        )
        assert {row.column_name: row.comment for row in said} == dict(view.columns)


def test_every_table_and_column_has_a_sentence() -> None:
    for table in METADATA.tables.values():
        assert table.comment
        assert all(column.comment for column in table.columns)
    for name, columns in readable().items():
        assert all(columns.values()), name
    assert EVENTS.name in readable()
    assert not {table.name for table in DERIVED} & set(readable())


def test_steps_tell_where_each_record_begins_and_ends(store: EventStore) -> None:
    summary = StepsSummary(first_step=31, num_steps=20, duration=SECOND)
    store.append([steps(2, 30), record(31, summary)])
    assert asked(store, "SELECT rank, first_step, last_step FROM v_steps ORDER BY 2") == [
        (0, 2, 30),
        (0, 31, 50),
    ]


def test_faults_of_ranks_and_machines_stand_in_one_view(store: EventStore) -> None:
    xid = GpuXid(code=79, device="GPU-a", classification="reboot", message="fell off")
    store.append(
        [
            record(1, Fault(kind="exception", step=7, message="it's over")),
            record(2, xid, run=None),
            record(3, Health(check="nvlink", state="unhealthy", detail="2 of 18")),
            record(4, Note(text="no fault")),
        ]
    )
    columns = "event, kind, code, device, classification, step, message"
    assert asked(store, f"SELECT {columns} FROM v_faults ORDER BY time") == [  # noqa: S608
        ("fault", "exception", None, None, None, 7, "it's over"),
        ("gpu.xid", None, 79, "GPU-a", "reboot", None, "fell off"),
        ("health", "nvlink", None, None, "unhealthy", None, "2 of 18"),
    ]
    assert asked(store, "SELECT node, first_seen, last_seen, runs, faults FROM v_nodes") == [
        ("n1", ANCHOR + SECOND, ANCHOR + 4 * SECOND, 1, 2)
    ]


def test_a_view_that_changed_is_written_anew_at_the_next_opening(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    with closing(EventStore.open(path)) as store, store._engine.begin() as connection:
        connection.exec_driver_sql("CREATE OR REPLACE VIEW v_nodes AS SELECT 1 AS old")
        connection.exec_driver_sql("COMMENT ON TABLE alembic_version IS 'described by another'")
    with closing(EventStore.open(path)) as store:
        assert store.reading.sql.ask("FROM v_nodes").table.column_names[0] == "node"
