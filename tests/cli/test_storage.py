"""`headway storage`: a copy from a running collector, Parquet out of it, and back in."""

from contextlib import closing
from pathlib import Path

import pytest

from collector_process import CollectorProcess
from headway.cli import main
from headway.events import RunStarted
from headway.storage.store import EventStore
from records import record, steps

HELD = [record(1, RunStarted(run_name="llama")), steps(2, 60)]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "events.duckdb"
    with closing(EventStore.open(path)) as store:
        store.append(HELD)
    return path


@pytest.mark.slow
def test_a_running_collector_gives_a_backup_and_an_export_that_go_back_in(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collector = CollectorProcess(database)
    try:
        copy, folder = tmp_path / "copy.duckdb", tmp_path / "out"
        endpoint = ("--endpoint", collector.address)
        assert main(["storage", "backup", str(copy), *endpoint]) == 0
        assert main(["storage", "export", str(folder), *endpoint]) == 0
        assert main(["storage", "backup", str(copy), *endpoint]) == 2
    finally:
        assert collector.stop()[0] == 0
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".headway")] == []
    said = capsys.readouterr()
    assert "events.parquet: 2 rows" in said.out
    assert "exists already" in said.err
    with closing(EventStore.open(copy)) as store:
        assert list(store.envelopes()) == HELD
    other = tmp_path / "other.duckdb"
    for stored, known in ((60, 0), (0, 60)):
        assert main(["storage", "import", str(folder), "--database", str(other)]) == 0
        assert f"{stored} records stored, {known} known already" in capsys.readouterr().out
    with closing(EventStore.open(other)) as store:
        assert list(store.envelopes()) == HELD


def test_a_closed_file_is_backed_up_and_exported_without_a_collector(
    database: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.duckdb"
    assert main(["storage", "backup", str(copy), "--database", str(database)]) == 0
    assert main(["storage", "export", str(tmp_path / "out"), "--database", str(copy)]) == 0
    assert (tmp_path / "out" / "segments.parquet").is_file()


@pytest.mark.slow
def test_a_token_that_may_only_read_gets_no_copy(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = str(tmp_path / "tokens.json")
    assert main(["token", "add", "grafana", "--scope", "read", "--tokens", tokens]) == 0
    secret = capsys.readouterr().out.split()[-1]
    collector = CollectorProcess(database)
    try:
        copy = tmp_path / "copy.duckdb"
        asked = ["--endpoint", collector.address, "--token", secret]
        assert main(["storage", "backup", str(copy), *asked]) == 2
    finally:
        collector.stop()
    assert "needs admin" in capsys.readouterr().err
    assert not copy.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["import", "nowhere"],
        ["export", "out", "--database", "nowhere.duckdb"],
        ["backup", "copy.duckdb", "--endpoint", "http://127.0.0.1:9"],
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["storage", *words]) == 2
    assert list(tmp_path.iterdir()) == []
