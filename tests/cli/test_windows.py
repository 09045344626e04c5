"""`headway report` for a part of a run, through the collector's API."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway import cli
from headway.storage.collector_errors import CollectorRefused
from incident_collector import Running, running
from timeline import SECOND, at, timeline

OUTAGE = timeline(
    """
    0        attempt A launcher
    0        configured target=1000
    0-100    steps 1-100
    100      scheduled c100
    100      finalized c100
    100-150  steps 101-150
    150      exit code=1 by=itself
    260      attempt B launcher
    270      resumed 100 from=c100
    270-370  steps 101-200
    370      run_ended completed
    """
)


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "events.duckdb", OUTAGE, at(400)) as found:
        yield found


def test_a_window_is_the_ledger_between_two_times(collector: Running) -> None:
    part = collector.client.window("run", at(90), at(160))
    assert part["elapsed_ns"] == 70 * SECOND
    spent = {name: ns / SECOND for name, ns in part["categories"].items() if ns}
    assert spent == {"productive": 10, "rolled_back": 50, "down": 10}
    ratio = part["training_goodput"]
    assert ratio["numerator_ns"] == [10 * SECOND, 10 * SECOND]
    assert ratio["denominator_ns"] == part["elapsed_ns"]
    assert ratio["formula"] == "productive / elapsed"


def test_what_is_excluded_does_not_count_and_is_said(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["report", "run", "--since", "220s", "--exclude", "220s/110s"]
    assert cli.main([*command, "--endpoint", collector.address]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "run: 1 min 50 s from" in said
    assert "without 2026-" in said
    assert "= 100.000 s / 110.000 s" in said


def test_a_part_that_would_end_before_it_begins_is_refused_with_the_runs_own_times(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["report", "run", "--since", "2100-01-01", "--endpoint", collector.address]
    assert cli.main(command) == 2
    said = capsys.readouterr().err
    assert "would begin at 2100-01-01 00:00:00 UTC and end at" in said
    assert "the run lasted from" in said


def test_the_window_as_json_is_the_object_of_the_api(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["report", "run", "--json", "--since", "100s", "--until", "50s"]
    assert cli.main([*command, "--endpoint", collector.address]) == 0
    part = json.loads(capsys.readouterr().out)
    assert part == collector.client.window("run", at(270), at(320))


def test_sliding_windows_are_served(collector: Running) -> None:
    answer = collector.http.get(
        "/api/v1/runs/run/windows", params={"length": 100 * SECOND, "step": 100 * SECOND}
    )
    ends = [part["end"] for part in answer.json()["windows"]]
    assert ends == [at(70), at(170), at(270), at(370)]


@pytest.mark.parametrize(
    ("path", "query", "sentence"),
    [
        ("window", {"start": "noon"}, "start must be a number from 0 to 9223372036854775807"),
        ("window", {"start": 20, "end": 10}, "cannot end at 10 before it starts at 20"),
        ("window", {"exclude": "5"}, "exclude must be START-END in nanoseconds, got '5'"),
        ("windows", {"length": 5, "step": 1}, "cuts the run into more than 10000 windows"),
        ("windows", {"length": 0, "step": 10**12}, "length must be a number from 1 to"),
    ],
)
def test_a_wrong_window_is_refused_in_words(
    collector: Running, path: str, query: dict[str, str | int], sentence: str
) -> None:
    answer = collector.http.get(f"/api/v1/runs/run/{path}", params=query)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]


def test_the_client_passes_a_refusal_on(collector: Running) -> None:
    with pytest.raises(CollectorRefused, match="cannot end"):
        collector.client.window("run", at(10), at(5))


def test_a_time_that_cannot_be_read_is_a_sentence(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["report", "run", "--since", "yesterday", "--endpoint", collector.address]
    assert cli.main(command) == 2
    assert "cannot read the time 'yesterday'" in capsys.readouterr().err


def test_the_report_says_other_formulas_and_the_terminal_prints_them(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    report = collector.client.report("run")
    assert [figure["name"] for figure in report["alternatives"]] == [
        "all_wall_time",
        "without_rescheduling",
    ]
    assert report["arrival"] is None
    assert cli.main(["report", "run", "--endpoint", collector.address]) == 0
    assert "productive / (elapsed - down)" in capsys.readouterr().out
