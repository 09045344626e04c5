"""Trainings that Lightning and Transformers drive, recorded by the callbacks."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.exporter.spool import SpoolReader, spools
from headway.ledger import Timeline
from headway.report import report
from training_run import environment

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]
PROGRAMS = {
    "lightning": ["lightning_training.py", "lightning.pytorch"],
    "pytorch_lightning": ["lightning_training.py", "pytorch_lightning"],
    "transformers": ["transformers_training.py"],
}


@pytest.mark.parametrize("framework", PROGRAMS)
def test_a_training_that_fails_and_resumes_is_recorded_completely(
    framework: str, tmp_path: Path
) -> None:
    checkpoints, spool = tmp_path / "checkpoints", tmp_path / "spool"
    checkpoints.mkdir()
    program, *arguments = PROGRAMS[framework]
    command = [sys.executable, str(TESTS / program), *arguments, str(checkpoints)]

    failed = _run([*command, "35"], spool)
    resumed = _run(command, spool)

    assert failed.returncode == 1, failed.stderr
    assert "no such batch" in failed.stderr
    assert resumed.returncode == 0, resumed.stderr
    told = _report(spool)
    assert told["run_name"] == "line"
    assert told["state"] == "completed"
    assert told["steps"]["target"] == 20
    assert told["steps"]["surviving"] == 20
    assert told["problems"] == []
    saved = {(item["step"], item["state"]) for item in told["checkpoints"]}
    assert {(5, "claimed"), (10, "claimed"), (15, "verified"), (20, "claimed")} <= saved
    assert {step for step, _ in saved} == {5, 10, 15, 20}  # Lightning saves the 15th once more
    (incident,) = told["incidents"]
    assert incident["cause"] == "exception"
    assert incident["rollback_steps"] == 2
    first, second = told["attempt_list"]
    assert (first["first_step"], first["last_step"]) == (1, 17)
    assert (second["resumed"], second["first_step"], second["last_step"]) == (15, 16, 20)
    spent = told["categories"]
    for category in ("productive", "data_wait", "checkpoint_save", "evaluation", "startup"):
        assert spent[category] > 0, category


def _run(command: list[str], spool: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment(spool) | {"HEADWAY_RUN_ID": "7"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _report(spool: Path) -> dict[str, Any]:
    envelopes = []
    for folder in spools(spool):
        batch = SpoolReader(folder).read(limit=10**6)
        assert batch.finished
        envelopes += batch.envelopes
    timeline = Timeline("line-7")
    timeline.add(envelopes)
    return report(timeline.ledger(max(item.anchor + item.monotonic for item in envelopes)))
