"""Trainings that Lightning and Transformers drive, recorded by the callbacks."""

from pathlib import Path

import pytest

from framework_run import assert_complete, fail_and_resume

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
    program, *arguments = PROGRAMS[framework]
    # the 35th micro-batch belongs to the 18th step
    told = fail_and_resume([str(TESTS / program), *arguments], 35, tmp_path)
    assert_complete(told, rollback=2)
    assert told["categories"]["data_wait"] > 0
