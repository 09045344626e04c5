"""`headway note` and `headway incident ID note`: what people want to be remembered."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway import cli
from incident_collector import Running, running


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "events.duckdb") as found:
        yield found


def test_an_incident_is_noted_and_labelled_and_shows_it(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    (one,) = collector.client.incidents()
    command = ["incident", one["incident"], "note", "called the vendor", "--label", "vendor"]
    assert cli.main([*command, "--author", "Ada", "--endpoint", collector.address]) == 0
    said = capsys.readouterr().out
    assert "called the vendor (labelled it vendor)" in said
    assert cli.main(["incident", one["incident"], "--json", "--endpoint", collector.address]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["labels"], found["history"][0]["author"]) == (["vendor"], "Ada")


def test_notes_are_written_and_read(collector: Running, capsys: pytest.CaptureFixture[str]) -> None:
    to = ["--author", "Ada", "--endpoint", collector.address]
    assert cli.main(["note", *to]) == 0
    assert "Nobody has said anything yet." in capsys.readouterr().out
    assert cli.main(["note", "node", "n1", "fan replaced", *to]) == 0
    assert cli.main(["note", "run", "llama", "--label", "keep", *to]) == 0
    capsys.readouterr()
    assert cli.main(["note", *to]) == 0
    said = capsys.readouterr().out
    assert "node n1" in said
    assert "labelled it keep" in said
    assert cli.main(["note", "--search", "FAN", "--json", *to]) == 0
    assert [one["text"] for one in json.loads(capsys.readouterr().out)] == ["fan replaced"]
    assert cli.main(["note", "node", "n1", *to]) == 0
    assert "fan replaced" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["note", "run"], "which run?"),
        (["note", "--label", "x"], "labels of what?"),
        (["incident", "0123", "note"], "the note says nothing"),
        (["incident", "0123", "ack", "--label", "x"], "labels belong to a note"),
        (["incident", "0123", "ack", "word"], "belong to a correction"),
        (["note", "run", "x", "y", "--database", "z"], "only read"),
        (["incident", "0123", "note", "y", "--database", "z"], "only read"),
    ],
)
def test_words_that_do_not_belong_together_are_refused(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    assert error in capsys.readouterr().err
