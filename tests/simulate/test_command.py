"""`headway simulate`: events as lines, or the truth beside the ledger."""

import json
from pathlib import Path

import pytest

from collector_process import collector_process
from headway import cli
from headway.settings import ClientSettings
from headway.storage.client import CollectorClient
from headway.wire import from_json


def test_events_are_printed_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["simulate", "benchmark-in-process"]) == 0

    lines = capsys.readouterr().out.splitlines()
    envelopes = [from_json(json.loads(line)) for line in lines]
    assert envelopes[0].event.name == "allocation"
    assert envelopes[-1].event.name == "run.ended"


def test_truth_and_ledger_are_printed_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.jsonl"

    assert cli.main(["simulate", "stormy", "--seed", "3", "--json", "--out", str(file)]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["truth"]["categories"] == found["headway"]["categories"]
    assert found["truth"]["incidents"] == found["headway"]["incidents"]
    assert len(file.read_text(encoding="ascii").splitlines()) == found["events"]


def test_without_a_preset_they_are_listed_and_a_wrong_one_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["simulate"]) == 0
    assert "fleet-54-days          16,384 GPUs, 54 d 0 h\n" in capsys.readouterr().out

    assert cli.main(["simulate", "sunny"]) == 2
    said = capsys.readouterr().err
    assert "there is no preset 'sunny'" in said
    assert "choose one of: stormy, " in said


def test_a_file_that_cannot_be_written_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["simulate", "stormy", "--out", str(tmp_path)]) == 2
    assert "Is a directory" in capsys.readouterr().err


@pytest.mark.slow
def test_a_simulated_run_can_be_shipped_to_the_collector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with collector_process(tmp_path / "headway.duckdb") as collector:
        shipped = cli.main(["simulate", "stormy", "--ship", "--endpoint", collector.address])
        said = capsys.readouterr().out
        run = said.splitlines()[-1].removeprefix("see: headway report ")
        with CollectorClient(ClientSettings(endpoint=collector.address)) as client:
            report = client.report(run)

    assert shipped == 0
    assert report["state"] == "stopped"
    assert report["attempts"] == 10
