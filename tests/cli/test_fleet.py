"""`headway report --fleet`: all runs in one table."""

import json
from pathlib import Path

import pytest

from headway import cli
from headway.events import RunConfigured
from incident_collector import broken, running
from records import record


def test_the_fleet_is_summed_up_by_a_label(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labelled = record(
        15, RunConfigured(labels={"team": "research"}), producer="ab" * 16, run="llama-1"
    )
    events = [*broken("llama-1", "ab" * 16), labelled, *broken("llama-2", "cd" * 16)]
    with running(tmp_path / "events.duckdb", events) as collector:
        command = ["report", "--fleet", "--endpoint", collector.address]
        assert cli.main([*command, "--by", "team"]) == 0
        printed = capsys.readouterr().out
        assert cli.main([*command, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
    assert "research" in printed
    assert "without it" in printed
    assert "training = " in printed
    (whole,) = found["groups"]
    assert whole["runs"] == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(["llama", "--fleet"], "about all runs"), (["--by", "team"], "groups the runs of the fleet")],
)
def test_words_that_do_not_belong_together_are_refused(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", *arguments]) == 2
    assert sentence in capsys.readouterr().err
