"""A checkpoint holds the state at the save, whatever the training does while it is written."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from training_run import TORCHRUN, environment

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parents[1] / "saved_states.py"
Answers = dict[str, dict[str, bool]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    folder = tmp_path_factory.mktemp("saved states")
    ended = subprocess.run(
        [sys.executable, *TORCHRUN, str(PROGRAM), str(folder)],
        env=environment(folder / "spool"),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: Answers = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("way", ["blocking", "background"])
def test_the_file_equals_the_state_at_the_save_and_not_the_one_that_followed(
    answers: Answers, way: str
) -> None:
    assert answers[way] == {"as at the save": True, "as it is now": False, "changed": True}


def test_without_a_copy_the_file_would_be_torn(answers: Answers) -> None:
    """On a CPU, NVRx hands the live parameters to the writing process; a newer one may not."""
    assert answers["aliased"]["changed"]
    assert not answers["aliased"]["as at the save"]
