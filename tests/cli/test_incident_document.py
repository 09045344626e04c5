"""`headway incident --markdown|--html` writes the post-mortem, also after the collector stopped."""

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from headway import cli
from headway.cli.incident_document import local_zone
from incident_collector import Running, running


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("document") / "events.duckdb") as found:
        yield found


def identity(collector: Running) -> str:
    (one,) = collector.client.incidents()
    return str(one["incident"])


def test_a_post_mortem_is_printed_or_written_to_a_file(
    collector: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["incident", identity(collector), "--endpoint", collector.address]
    assert cli.main([*asked, "--markdown"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# Post-mortem: Exception on rank 0 (n1)\n")
    assert "## Open questions\n" in said
    for form, begins in (("--markdown", "# Post-mortem"), ("--html", "<!DOCTYPE html>")):
        assert cli.main([*asked, form, "-o", str(tmp_path / "found")]) == 0
        assert (tmp_path / "found").read_text(encoding="utf-8").startswith(begins)
    assert capsys.readouterr().out == ""


def test_a_closed_file_tells_the_same_and_whom_alerts_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.duckdb"
    with running(path) as collector:
        one = identity(collector)
        asked = ["incident", one, "--markdown"]
        assert cli.main([*asked, "--endpoint", collector.address]) == 0
        live = capsys.readouterr().out
    before = sorted(one.name for one in tmp_path.iterdir())
    assert cli.main([*asked, "--database", str(path)]) == 0
    closed = capsys.readouterr().out
    assert "no notice about the run or the suspected node went out" in live
    assert _section(closed, "Whom alerts told") == _section(live, "Whom alerts told")
    assert _section(closed, "Whose it was") == _section(live, "Whose it was")
    assert sorted(one.name for one in tmp_path.iterdir()) == before
    path.with_suffix(".alerts.sqlite").unlink()
    assert cli.main([*asked, "--database", str(path)]) == 0
    without = capsys.readouterr().out
    assert _section(without, "Whom alerts told") == "Unknown: no book of alerts could be read."


def _section(text: str, title: str) -> str:
    return text.partition(f"## {title}\n\n")[2].partition("\n\n##")[0]


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["ack", "--markdown"], "--markdown writes, and ack records"),
        (["-o", "x.md"], "--output is where a post-mortem goes"),
        (["--markdown", "-o", "/nowhere/x.md"], "cannot write '/nowhere/x.md'"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    collector: Running, words: list[str], refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["incident", identity(collector), *words, "--endpoint", collector.address]
    assert cli.main(asked) == 2
    assert refused in capsys.readouterr().err


def test_an_incident_that_is_not_known_is_refused(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["incident", "nothing", "--html", "--endpoint", collector.address]
    assert cli.main(asked) == 2
    assert "no incident 'nothing' is known here" in capsys.readouterr().err


def test_times_are_in_the_zone_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    assert str(local_zone()) == "Europe/Berlin"
    monkeypatch.setenv("TZ", "no such zone")
    assert local_zone() is UTC
    monkeypatch.setattr("headway.cli.incident_document._LOCAL", Path("/nowhere"))
    monkeypatch.delenv("TZ")
    assert local_zone() is UTC
