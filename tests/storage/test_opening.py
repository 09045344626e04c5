"""A database is opened or refused with a sentence, whatever a crash or a person made of it."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from headway.storage import opening
from headway.storage import probe as probe_module
from headway.storage.acknowledged import acknowledged, journal_path
from headway.storage.opening import Lock, recover
from headway.storage.probe import State, probe
from headway.storage.store import EventStore, StoreError
from killed_store import PER_COMMIT, copy_of, killed_store, log_of
from records import PRODUCER, steps

pytestmark = pytest.mark.slow

COMMITS = 4
ALL = list(range(1, PER_COMMIT * COMMITS + 1))
MOMENT = 1_700_000_000_123_456_789


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """Return a database with five of six commits in its log, and the log's size after each."""
    database = tmp_path_factory.mktemp("killed") / "events.duckdb"
    return database, killed_store(database, COMMITS)


@pytest.fixture
def database(killed: tuple[Path, list[int]], tmp_path: Path) -> Path:
    return copy_of(killed[0], tmp_path / "copy")


def kept(database: Path) -> list[int]:
    """Return the numbers of the stored steps, read as any program would."""
    with duckdb.connect(str(database)) as engine:
        if not engine.execute("SELECT 1 FROM duckdb_tables()").fetchall():
            return []
        rows = engine.execute("SELECT first_sequence, last_sequence FROM events").fetchall()
    return sorted(number for first, last in rows for number in range(first, last + 1))


def damage(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def contents(database: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in database.parent.iterdir()}


def test_what_a_killed_collector_left_is_usable_and_whole(database: Path) -> None:
    before = contents(database)
    assert probe(database).state is State.USABLE
    assert contents(database) == before
    assert recover(database) is None
    assert kept(database) == ALL


def test_a_log_cut_at_any_64th_byte_gives_its_whole_commits_and_tells_what_is_lost(
    killed: tuple[Path, list[int]], tmp_path: Path
) -> None:
    source, sizes = killed

    def is_right(cut: int) -> bool:
        database = copy_of(source, tmp_path / str(cut))
        os.truncate(log_of(database), cut)
        told = recover(database)
        missing = ALL[PER_COMMIT * (1 + sum(size <= cut for size in sizes)) :]
        ranges = [] if told is None else [item.ranges for item in told.lost]
        return kept(database) == ALL[: len(ALL) - len(missing)] and ranges == (
            [((missing[0], missing[-1]),)] if missing else []
        )

    cuts = range(0, sizes[-1] + 1, 64)
    with ThreadPoolExecutor(4) as pool:
        right = dict(zip(cuts, pool.map(is_right, cuts), strict=True))
    assert all(right.values()), right


def test_a_log_with_a_damaged_end_gives_all_before_it_and_is_kept(
    killed: tuple[Path, list[int]], database: Path
) -> None:
    """A power cut may leave zeros where the last, unacknowledged commit was being written."""
    log, sizes = log_of(database), killed[1]
    with log.open("ab") as file:
        file.write(bytes(512))
    damaged = log.read_bytes()
    found = probe(database)
    assert found.state is State.DAMAGED_WAL
    assert "write-ahead log" in found.words
    assert contents(database)[log.name] == damaged
    done = recover(database, lambda: MOMENT)
    assert done is not None
    (aside,) = done.set_aside
    assert aside.name == "events.duckdb.wal.damaged-20231114T221320.123456Z"
    assert aside.read_bytes() == damaged
    assert (done.lost, done.kept + done.damaged) == ((), len(damaged))
    assert done.kept >= sizes[-1]
    assert kept(database) == ALL


@pytest.mark.parametrize("content", [b"\0" * 40, b"\xff" * 40])
def test_a_log_damaged_in_the_middle_gives_what_lies_before_and_tells_the_rest(
    killed: tuple[Path, list[int]], database: Path, content: bytes
) -> None:
    damage(log_of(database), killed[1][1] + 200, content)
    done = recover(database)
    assert done is not None
    assert [item.ranges for item in done.lost] == [((3 * PER_COMMIT + 1, ALL[-1]),)]
    assert {(item.run, item.producer) for item in done.lost} == {("llama-1", PRODUCER)}
    assert kept(database) == ALL[: 3 * PER_COMMIT]


def test_a_log_that_the_engine_takes_for_another_files_is_kept_before_it_is_gone(
    database: Path,
) -> None:
    """Its first bytes have no checksum: the engine would skip it, delete it and say nothing."""
    damage(log_of(database), 9, b"\xff")
    damaged = log_of(database).read_bytes()
    done = recover(database)
    assert done is not None
    assert [path.read_bytes() for path in done.set_aside] == [damaged]
    assert [item.count for item in done.lost] == [len(ALL) - PER_COMMIT]
    assert kept(database) == ALL[:PER_COMMIT]


def test_a_log_without_its_file_is_kept_and_a_new_file_begins(database: Path) -> None:
    log = log_of(database).read_bytes()
    database.unlink()
    done = recover(database)
    assert done is not None
    assert [path.read_bytes() for path in done.set_aside] == [log]
    assert [item.count for item in done.lost] == [len(ALL) - PER_COMMIT]
    assert kept(database) == []


def test_a_log_that_is_gone_is_told_as_a_loss(database: Path) -> None:
    log_of(database).unlink()
    done = recover(database)
    assert done is not None
    assert (done.set_aside, [item.count for item in done.lost]) == ((), [len(ALL) - PER_COMMIT])


def test_a_database_moved_away_by_a_person_is_no_loss(database: Path) -> None:
    log_of(database).unlink()
    database.unlink()
    assert recover(database) is None
    assert probe(database).lost == ()


def test_what_was_told_once_is_not_told_at_the_next_start(database: Path) -> None:
    log_of(database).unlink()
    assert recover(database) is not None
    store = EventStore.open(database)
    store.settle()
    store.close()
    assert recover(database) is None


def test_an_engine_that_aborts_or_hangs_on_a_log_takes_only_its_own_process(
    database: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ends = {
        "aborts": "import os; os.abort()",
        "hangs": "import time; time.sleep(600)",
    }
    for name, end in ends.items():
        python = tmp_path / name
        python.write_text(
            f"#!/bin/sh\nif [ -s \"$4.wal\" ]; then exec '{sys.executable}' -c '{end}'; fi\n"
            f"exec '{sys.executable}' \"$@\"\n"
        )
        python.chmod(0o700)
        with monkeypatch.context() as patch:
            patch.setattr(probe_module.sys, "executable", str(python))
            patch.setattr(probe_module, "_LOOK_TIME", 60.0 if name == "aborts" else 1.0)
            patch.setattr(opening, "_SALVAGE_TIME", 2.0)
            found = probe(database)
            assert found.state is State.DAMAGED_WAL
            assert ("by signal 6" if name == "aborts" else "took more than 1 s") in found.words
            if name == "hangs":
                done = recover(database)
                assert done is not None
                assert (done.kept, len(done.set_aside)) == (0, 1)


def foreign_files(folder: Path) -> Iterator[tuple[Path, State, str]]:
    text = folder / "notes.txt"
    text.write_text("not a database " * 2000)
    yield text, State.FOREIGN, "does not begin as a DuckDB file"
    empty = folder / "empty"
    empty.touch()
    yield empty, State.FOREIGN, "does not begin as a DuckDB file"
    other = folder / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (n INTEGER)")
    connection.close()
    yield other, State.FOREIGN, "does not begin as a DuckDB file"
    theirs = folder / "theirs.duckdb"
    with duckdb.connect(str(theirs)) as engine:
        engine.execute("CREATE TABLE invoices (n INTEGER)")
    yield theirs, State.FOREIGN, "invoices"
    newer = folder / "newer.duckdb"
    with duckdb.connect(str(newer)) as engine:
        engine.execute("CREATE TABLE events (n INTEGER)")
        engine.execute("CREATE TABLE alembic_version AS SELECT '9999' AS version_num")
    yield newer, State.NEWER_SCHEMA, "upgrade headway"
    yield folder, State.UNREADABLE, "Is a directory"
    yield folder / "nowhere" / "x.duckdb", State.UNREADABLE, "nowhere"


def test_a_foreign_or_newer_file_is_refused_with_the_next_step_and_left_alone(
    tmp_path: Path,
) -> None:
    for path, state, words in foreign_files(tmp_path):
        before = path.read_bytes() if path.is_file() else None
        found = probe(path)
        assert (path.name, found.state) == (path.name, state)
        assert words in f"{found.words}; {found.next_step}"
        assert found.next_step
        with pytest.raises(StoreError, match="HEADWAY_COLLECTOR_DATABASE"):
            recover(path)
        assert before == (path.read_bytes() if path.is_file() else None)
        assert not log_of(path).exists()


def test_a_truncated_or_damaged_file_is_refused_and_left_alone(database: Path) -> None:
    whole = database.read_bytes()
    for size in (20, 4096, 12287, 12288, len(whole) // 2, len(whole) - 4096):
        database.write_bytes(whole[:size])
        before = contents(database)
        found = probe(database)
        assert (size, found.state) == (size, State.DAMAGED_FILE)
        assert "backup" in found.next_step
        with pytest.raises(StoreError, match="was not touched"):
            recover(database)
        assert contents(database) == before


def test_a_file_that_another_process_holds_is_left_to_it(database: Path) -> None:
    program = (
        "import sys, duckdb; held = duckdb.connect(sys.argv[1]); print('held', flush=True)\n"
        "sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    found = probe(database)
    assert found.state is State.HELD
    with pytest.raises(StoreError, match="held by another process"):
        recover(database)
    holder.communicate("")
    assert probe(database).state is State.USABLE


def test_only_one_collector_at_a_time_gets_to_look(tmp_path: Path) -> None:
    first = Lock(tmp_path / "events.duckdb")
    with pytest.raises(StoreError, match="held by another process"):
        Lock(tmp_path / "events.duckdb")
    first.release()
    Lock(tmp_path / "events.duckdb").release()


def test_a_full_disk_leaves_a_damaged_log_as_it_is(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(log_of(database), log_of(database).stat().st_size - 30, b"\xff" * 20)
    log = log_of(database).read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(opening.shutil, "copy2", full)
        with pytest.raises(StoreError, match="No space left"):
            recover(database)
    assert log_of(database).read_bytes() == log
    assert recover(database) is not None


def test_the_journal_of_an_older_schema_is_compared_with_its_producers(tmp_path: Path) -> None:
    database = tmp_path / "events.duckdb"
    schema = Path(__file__).parents[1] / "data" / "storage" / "schema_0002.sql"
    with duckdb.connect(str(database)) as engine:
        engine.execute(schema.read_text(encoding="utf-8"))
    journal_path(database).write_text(f'[["llama-1","{PRODUCER}",1,7]]\n', encoding="utf-8")
    assert probe(database).lost == ()
    journal_path(database).write_text(f'[["llama-1","{PRODUCER}",1,8]]\n', encoding="utf-8")
    assert [item.ranges for item in probe(database).lost] == [((8, 8),)]


def test_a_journal_that_was_cut_or_overwritten_says_what_it_still_knows(database: Path) -> None:
    journal = journal_path(database)
    lines = journal.read_bytes()
    journal.write_bytes(b"\xff\xfe{]\n5\nnull\n[[1]]\n" + lines[:-7])
    (ranges,) = [list(found) for found in acknowledged(database).values()]
    assert ranges == [(PER_COMMIT + 1, ALL[-1] - PER_COMMIT)]
    assert recover(database) is None


def test_the_journal_is_gone_after_an_orderly_end_and_small_after_a_checkpoint(
    tmp_path: Path,
) -> None:
    path = tmp_path / "events.duckdb"
    store = EventStore.open(path)
    for number in range(1, 200):
        store.append([steps(number, number)])
    grown = journal_path(path).stat().st_size
    store.settle()
    store.append([steps(200, 200)])
    assert journal_path(path).stat().st_size < grown / 50
    store.close()
    with suppress(FileNotFoundError):
        pytest.fail(f"{journal_path(path).read_bytes()!r} is left")
