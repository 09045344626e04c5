"""Incidents on the command line: what broke, whose it was, what it cost, and a person's word."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway import cli
from headway.cli.incident_text import print_incident, print_incidents
from headway.ledger import ledger
from headway.report import report
from incident_collector import Running, running
from timeline import at, timeline
from worked_example import UNALLOCATED


def incident(text: str = UNALLOCATED, until: float = 754) -> dict[str, Any]:
    """Return the only incident of a timeline as the API gives it."""
    found = report(ledger(timeline(text), at(until)))
    (one,) = found["incidents"]
    added = {"run": found["run"], "run_name": found["run_name"], "gpu_repeats_in_all_runs": None}
    return {**one, **added}


def printed(one: dict[str, Any]) -> list[str]:
    out = io.StringIO()
    print_incident(one, out)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "events.duckdb") as found:
        yield found


def test_the_headline_tells_what_whose_and_the_cost() -> None:
    said = printed(incident())
    assert said[0] == (
        "Killed on rank 3 (node-a); recovered after 1 min 21 s; 74 steps rolled back (1 min 14 s)."
    )


def test_verdict_phases_attempts_and_evidence_are_listed() -> None:
    said = "\n".join(printed(incident()))
    for line in (
        "Cause killed (first fault)",
        "Suspect rank 3, node node-a",
        "Outcome held at first",
        "detect 1 min 0 s until somebody noticed",
        "load 8.0 s of the checkpoint",
        "Rolled back 74 steps 1 min 14 s",
        "2 launcher progressed 500",
        "ended by signal 9 on rank 3",
    ):
        assert line in said


def test_a_gpu_that_other_runs_blame_too_is_told_with_its_count() -> None:
    said = "\n".join(printed({**incident(), "gpu_repeats_in_all_runs": 3}))
    assert "GPU in all runs to blame for 3 incidents this week" in said


def test_an_open_incident_says_so_and_what_goes_on() -> None:
    until_load = UNALLOCATED.split("646-654")[0] + "646 phase checkpoint_load rank=0..3"
    said = "\n".join(printed(incident(until_load, 700)))
    assert "not recovered for 2 min 6 s" in said
    assert "Recovered not yet" in said
    assert "rank 0 is in checkpoint_load" in said


def test_a_run_without_incidents_says_so() -> None:
    out = io.StringIO()
    print_incidents([], out)
    assert out.getvalue() == "No incident.\n"


def test_the_incidents_of_a_run_are_listed(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["incidents", "llama", "--endpoint", collector.address]
    assert cli.main(asked) == 0
    said = capsys.readouterr().out
    (one,) = collector.client.incidents()
    assert one["incident"] in said
    assert "Exception on rank 0" in said
    assert cli.main([*asked, "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["incident"] == one["incident"]


def test_a_person_takes_charge_and_corrects_the_cause(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    (one,) = collector.client.incidents()
    asked = ["incident", "--endpoint", collector.address, one["incident"]]
    assert cli.main([*asked, "ack", "--author", "Ada"]) == 0
    assert cli.main([*asked, "cause", "storage", "--author", "Ada", "--reason", "NFS full"]) == 0
    capsys.readouterr()
    assert cli.main(asked) == 0
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert said[0].startswith("Storage on rank 0")
    assert "Cause storage, corrected by Ada: NFS full" in said
    assert "By the rule exception (first fault)" in said
    assert "Taken charge of by Ada" in said
    assert cli.main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["original_cause"] == "exception"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cause", "oomm"], "unknown cause 'oomm'\nchoose one of: exception, gpu_oom"),
        (["cause"], "cause needs a cause\nchoose one of: exception, gpu_oom"),
        (["ack", "storage"], "a cause and a reason belong to a correction"),
        (["ack", "--reason", "x"], "a cause and a reason belong to a correction"),
    ],
)
def test_words_that_do_not_belong_together_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["incident", "0123", *words]) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_incident_is_a_sentence_with_the_next_step(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["incident", "0123", "--endpoint", collector.address]) == 2
    said = capsys.readouterr().err
    assert "no incident '0123' is known here" in said
    assert "headway incidents RUN" in said
