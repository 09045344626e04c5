"""Copies hold exactly what was committed, and go back in without doubling anything."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import parquet

from headway.events import Note, RunStarted
from headway.expiry import expiry
from headway.ledger import ledger
from headway.report import report
from headway.storage.copying import CopyError
from headway.storage.importing import import_folder
from headway.storage.said import rows_of
from headway.storage.store import EventStore, Quarantined
from headway.storage.tables import METADATA
from records import record, steps
from timeline import at, timeline

RUN = """
0       run_started llama
0       allocation 1
0       attempt A scheduler world=1
0-1000  steps 1-1000
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a database with events, a gap, a refused record, segments and rows of a ledger."""
    path = tmp_path / "events.duckdb"
    opened = EventStore.open(path)
    refused = Quarantined(received=5, reason="unknown event 'x'", raw='{"name": "x"}')
    opened.append([record(1, RunStarted(run_name="llama")), record(9, Note(text="x"))], [refused])
    events = timeline(RUN)
    opened.append(events)
    found = expiry("run", events, [], until=at(1000), as_of=at(1000))
    assert found is not None
    opened.keeping.expire("run", found, at(1000))
    opened.keeping.say({"run": rows_of(report(ledger(events, at(1000))))}, at(1000))
    opened.close()
    return path


@pytest.fixture
def store(path: Path) -> Iterator[EventStore]:
    with closing(EventStore.open(path)) as opened:
        yield opened


def content(path: Path) -> dict[str, list[Any]]:
    """Return every row of every table of a closed database."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return {
            name: sorted(connection.execute(f"FROM {name}").fetchall(), key=repr)
            for name in METADATA.tables
        }


@pytest.mark.slow
def test_an_export_taken_into_an_empty_database_gives_the_same_tables(
    path: Path, tmp_path: Path
) -> None:
    with closing(EventStore.open(path)) as store:
        counts = store.export(tmp_path / "out")
    assert counts["segments"] == 1
    other = EventStore.open(tmp_path / "other.duckdb")
    taken = import_folder(other, tmp_path / "out")
    other.close()
    whole = content(path)
    assert content(tmp_path / "other.duckdb") == whole
    assert taken.num_left_out == 0
    assert {name: len(rows) for name, rows in whole.items()} == counts


@pytest.mark.slow
def test_importing_twice_or_where_it_came_from_changes_nothing(path: Path, tmp_path: Path) -> None:
    before = content(path)
    with closing(EventStore.open(path)) as store:
        store.export(tmp_path / "out")
        for _ in range(2):
            taken = import_folder(store, tmp_path / "out")
            assert (taken.num_stored, taken.num_derived) == (0, 0)
    assert content(path) == before
    other = EventStore.open(tmp_path / "other.duckdb")
    for _ in range(2):
        import_folder(other, tmp_path / "out")
    other.close()
    assert content(tmp_path / "other.duckdb") == before


def test_records_that_expired_before_the_export_are_not_taken_again_from_their_agent(
    store: EventStore, tmp_path: Path
) -> None:
    store.export(tmp_path / "out")
    other = EventStore.open(tmp_path / "other.duckdb")
    import_folder(other, tmp_path / "out")
    assert other.append(timeline(RUN)).num_stored == 0
    other.close()


@pytest.mark.parametrize("missing", ["events", "segments"])
def test_a_folder_without_all_files_is_refused(
    store: EventStore, tmp_path: Path, missing: str
) -> None:
    store.export(tmp_path / "out")
    (tmp_path / "out" / f"{missing}.parquet").unlink()
    with pytest.raises(CopyError, match=rf"{missing}.parquet' cannot be read"):
        import_folder(store, tmp_path / "out")


def test_nothing_that_exists_is_written_over(store: EventStore, tmp_path: Path) -> None:
    with pytest.raises(CopyError, match="exists already"):
        store.backup(tmp_path / "events.duckdb")
    with pytest.raises(CopyError, match="exists already"):
        store.export(tmp_path)


@pytest.mark.slow
def test_a_backup_opens_as_a_database_with_everything_in_it(path: Path, tmp_path: Path) -> None:
    with closing(EventStore.open(path)) as store:
        store.backup(tmp_path / "copy.duckdb")
    assert content(tmp_path / "copy.duckdb") == content(path)
    restored = EventStore.open(tmp_path / "copy.duckdb")
    assert restored.append(timeline(RUN)).num_stored == 0
    restored.close()


@pytest.mark.slow
def test_a_backup_taken_while_events_arrive_is_a_moment_between_two_commits(
    store: EventStore, tmp_path: Path
) -> None:
    done = threading.Event()

    def write() -> None:
        for number in range(400):
            first = 1 + number * 100
            store.append([steps(first, first + 99, producer="ef" * 16, run="other")])
            if done.is_set():
                break

    writing = threading.Thread(target=write)
    writing.start()
    paths = [tmp_path / f"copy{number}.duckdb" for number in range(3)]
    for path in paths:
        store.backup(path)
    done.set()
    writing.join()
    for path in paths:
        found = content(path)
        told = [row for row in found["events"] if row[0] == "ef" * 16]
        held = [row[2:] for row in found["intervals"] if row[1] == "ef" * 16]
        assert held == ([(1, 100 * len(told))] if told else [])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_copy_for_which_there_is_no_room_leaves_nothing(
    store: EventStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = parquet.ParquetWriter
    monkeypatch.setattr(
        parquet, "ParquetWriter", lambda _, *rest, **named: real("/dev/full", *rest, **named)
    )
    with pytest.raises(CopyError, match=r"could not be written: .*No space left"):
        store.export(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("out")] == []
