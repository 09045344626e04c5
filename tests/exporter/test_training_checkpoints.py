"""Checkpoints hold the state at the save, and damage costs no more than one of them."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from training_run import environment

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parents[1] / "checkpoint_scenarios.py"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("checkpoints")
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), "all"],
        env={**environment(folder / "spool"), "HEADWAY_RECORDER_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def test_a_state_changed_while_it_is_written_is_saved_as_it_was(answers: dict[str, Any]) -> None:
    assert answers["torn"]["loaded"] == ["step-000001", "step-000001", [1.0]]


def test_a_save_is_durable_only_once_it_is_complete(answers: dict[str, Any]) -> None:
    assert answers["torn"]["events"] == [
        ["checkpoint.scheduled", "step-000001"],
        ["checkpoint.finalized", "step-000001"],
        ["checkpoint.loaded", "step-000001"],
    ]


def test_a_damaged_checkpoint_falls_back_and_then_to_none(answers: dict[str, Any]) -> None:
    older, none, _ = answers["damaged"]["loaded"]
    assert older == ["step-000001", "step-000002", [1.0]]
    assert none is None
    failed = [name for kind, name in answers["damaged"]["events"] if kind.endswith("load_failed")]
    assert failed == ["step-000002", "step-000002", "step-000001"]


def test_saving_a_damaged_checkpoint_again_moves_the_old_one_aside(
    answers: dict[str, Any],
) -> None:
    assert answers["damaged"]["loaded"][2] == ["step-000002", "step-000002", [2.0]]
    assert answers["damaged"]["aside"] == ["replaced"]


def test_an_abandoned_save_has_failed_and_the_next_one_is_unharmed(
    answers: dict[str, Any],
) -> None:
    assert answers["abandoned"]["durable"] == ["step-000001"]
    assert ["checkpoint.failed", "step-000002"] in answers["abandoned"]["events"]
    assert answers["abandoned"]["loaded"] == ["step-000003", "step-000003", [3.0]]


def test_a_killed_writing_process_is_noticed_and_replaced(answers: dict[str, Any]) -> None:
    assert answers["killed"]["noticed"] == "1 ranks lost the process that writes checkpoints"
    assert answers["killed"]["loaded"] == ["step-000001", "step-000001", [1.0]]


def test_a_save_that_cannot_be_placed_is_reported_and_training_goes_on(
    answers: dict[str, Any],
) -> None:
    assert answers["lost"]["events"][-1] == ["checkpoint.failed", "step-000002"]


def test_a_killed_training_leaves_no_process_behind(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(tmp_path), "wait"],
        env={**environment(tmp_path / "spool"), "HEADWAY_RECORDER_ENABLED": "0"},
        stdout=subprocess.PIPE,
        text=True,
    ) as training:
        assert training.stdout is not None
        started = json.loads(training.stdout.readline())
        assert len(started) >= 2
        training.kill()
    deadline = time.monotonic() + 30
    while left := [process_id for process_id in started if is_running(process_id)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def is_running(process_id: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return False


def test_a_writing_process_that_finds_its_training_dead_ends(tmp_path: Path) -> None:
    program = (
        "import os\n"
        "from headway.exporter.training import writer\n"
        "writer._prepare(None, [], os.getppid() + 1)\n"
        "print('it stays')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (-9, b"")
