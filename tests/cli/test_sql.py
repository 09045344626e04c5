"""`headway sql`, and asking a database file that no collector holds any more."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest

from collector_process import collector_process
from headway import cli
from headway.events import RunEnded
from headway.storage.store import EventStore
from incident_collector import Running, broken, running
from records import record

COUNT = "SELECT name, count(*) AS n FROM events GROUP BY name ORDER BY name LIMIT 2"


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "events.duckdb") as found:
        yield found


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """Return a database file as a collector left it."""
    path = tmp_path / "closed.duckdb"
    with closing(EventStore.open(path)) as store:
        store.append(broken("llama-1", "ab" * 16))
    return path


def test_sql_prints_a_table_or_what_programs_read(
    collector: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["sql", COUNT, "--endpoint", collector.address]
    assert cli.main(command) == 0
    printed = capsys.readouterr().out.split()
    assert printed[:2] == ["name", "n"]
    assert printed[-4:] == ["attempt.started", "1", "fault", "1"]
    assert cli.main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [["attempt.started", 1], ["fault", 1]]
    assert cli.main([*command, "--csv"]) == 0
    assert capsys.readouterr().out == "name,n\nattempt.started,1\nfault,1\n"
    assert cli.main([*command, "--arrow", str(tmp_path / "rows.arrow")]) == 0
    with pyarrow.ipc.open_stream((tmp_path / "rows.arrow").read_bytes()) as reader:
        assert reader.read_all().to_pydict() == {"name": ["attempt.started", "fault"], "n": [1, 1]}


def test_what_is_left_out_is_said(collector: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sql", "FROM events", "--limit", "2", "--endpoint", collector.address]) == 0
    assert "only the first 2 rows" in capsys.readouterr().err


def test_without_a_statement_sql_says_what_can_be_read(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["sql", "--endpoint", collector.address]) == 0
    said = capsys.readouterr().out
    assert "v_runs" in said
    assert "Identity of the run." in said


def test_a_refused_statement_is_status_2(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["sql", "DROP TABLE events", "--endpoint", collector.address]) == 2
    assert "DROP is not read-only" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["sql", COUNT],
        ["report"],
        ["report", "llama"],
        ["report", "llama", "--since", "1h"],
        ["incidents", "llama"],
        ["nodes"],
        ["nodes", "n1"],
    ],
)
def test_a_closed_file_answers_as_its_collector_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    path = tmp_path / "events.duckdb"
    ended = [*broken("llama-1", "ab" * 16), record(15, RunEnded(reason="failed"))]
    with running(path, ended) as collector:
        assert cli.main([*command, "--json", "--endpoint", collector.address]) == 0
        before = capsys.readouterr().out
    assert cli.main([*command, "--json", "--database", str(path)]) == 0
    assert timeless(json.loads(capsys.readouterr().out)) == timeless(json.loads(before))


def timeless(answer: Any) -> Any:
    """Return an answer without what moves with the time although nothing happens."""
    if isinstance(answer, dict):
        moving = ("as_of", "seconds")
        return {name: timeless(value) for name, value in answer.items() if name not in moving}
    return [*map(timeless, answer)] if isinstance(answer, list) else answer


def test_the_file_is_as_it_was(closed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in closed.parent.iterdir()}
    for command in (["report", "llama"], ["sql", COUNT], ["incidents"]):
        assert cli.main([*command, "--database", str(closed)]) == 0
    assert {path.name: path.read_bytes() for path in closed.parent.iterdir()} == before
    assert "llama" in capsys.readouterr().out


def test_a_closed_file_is_guarded_alike(closed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for statement in ("FROM '/etc/passwd'", "DELETE FROM events", "SELECT 1; SELECT 2"):
        assert cli.main(["sql", statement, "--database", str(closed)]) == 2
    assert "cannot be read with SQL" in capsys.readouterr().err


def test_nothing_is_recorded_in_a_closed_file(
    closed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["incident", "x", "ack", "--database", str(closed)]) == 2
    assert "nothing can be recorded" in capsys.readouterr().err


@pytest.mark.slow
def test_a_held_file_says_to_ask_its_collector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.duckdb"
    with collector_process(path):
        assert cli.main(["sql", COUNT, "--database", str(path)]) == 2
    said = capsys.readouterr().err
    assert "held by another process" in said
    assert "leave --database out" in said


def _folder(path: Path) -> None:
    path.mkdir()


def _without_tables(path: Path) -> None:
    duckdb.connect(str(path)).close()


def _of_another_program(path: Path) -> None:
    with duckdb.connect(str(path)) as engine:
        engine.execute("CREATE TABLE invoices (number INTEGER)")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "is not there"),
        (_folder, "is a folder"),
        (lambda path: path.write_bytes(b""), "does not begin as a DuckDB file"),
        (lambda path: path.write_bytes(b"no database" * 1000), "does not begin as a DuckDB file"),
        (_without_tables, "holds nothing that a collector wrote"),
        (_of_another_program, "holds the tables invoices and no events"),
    ],
)
def test_what_is_no_database_of_a_collector_is_said_with_the_next_step(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    make: Callable[[Path], object],
    words: str,
) -> None:
    path = tmp_path / "events.duckdb"
    make(path)
    assert cli.main(["report", "--database", str(path)]) == 2
    sentence, step = capsys.readouterr().err.splitlines()
    assert str(path) in sentence
    assert words in sentence
    assert step == "name the database file of a collector with --database FILE"
