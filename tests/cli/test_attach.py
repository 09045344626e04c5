"""`headway attach` against a real collector."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.cli import main
from incident_collector import Running, running


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("attached") / "events.duckdb") as found:
        yield found


def test_a_result_is_read_from_the_last_line_and_listed(
    collector: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    to = ["--run", "llama-1", "--author", "Ada", "--endpoint", collector.address]
    file = tmp_path / "ingest.json"
    file.write_text('{"rate":\n 5}', encoding="utf-8")
    assert main(["attach", str(file), *to]) == 0
    assert "ingest is kept with attempt a1 of llama-1" in capsys.readouterr().out

    monkeypatch.setattr("sys.stdin", io.StringIO('working ...\n{"state": "completed", "n": 1}\n'))
    assert main(["attach", "-", "--title", "drill", *to, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["numbers"] == {"n": 1.0}

    assert main(["attach", "--run", "llama", "--endpoint", collector.address]) == 0
    said = capsys.readouterr().out
    assert "ingest" in said
    assert "drill" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-", "--run", "llama-1"], "what is it called?"),
        (["nowhere.json", "--run", "llama-1"], "cannot be read"),
        (["nowhere.json"], "of which configuration?"),
        (["nowhere.json", "--run", "x", "--database", "y"], "only read"),
        ([__file__, "--run", "llama-1"], "holds no JSON object"),
    ],
)
def test_what_cannot_be_attached_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["attach", *arguments]) == 2
    assert words in capsys.readouterr().err
