"""The recipes for torchtitan and Megatron-LM, run on stand-ins that make the same calls."""

from pathlib import Path

import pytest

from framework_run import assert_complete, fail_and_resume

pytestmark = pytest.mark.slow
RECIPES = Path(__file__).parents[2] / "docs" / "recipes"
STAND_INS = Path(__file__).parents[1] / "stand_ins"
COMMANDS = {
    "torchtitan": [str(RECIPES / "torchtitan_headway.py")],
    "Megatron-LM": [
        str(RECIPES / "megatron_headway.py"),
        str(STAND_INS / "pretrain_nothing.py"),
    ],
}


@pytest.mark.parametrize("framework", COMMANDS)
def test_a_training_that_fails_and_resumes_is_recorded_completely(
    framework: str, tmp_path: Path
) -> None:
    told = fail_and_resume(COMMANDS[framework], 18, tmp_path, path=[STAND_INS])
    assert_complete(told, rollback=2)
