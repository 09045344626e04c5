"""The example in the documentation is what is written of the drill today, and true to its log."""

import re
from pathlib import Path

import pytest

from drilled import EXAMPLES, LAUNCHER_LOG, drilled, written
from headway.postmortem.model import Postmortem


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Postmortem:
    return drilled(tmp_path_factory.mktemp("drilled"))


def test_the_example_is_what_is_written_today(found: Postmortem) -> None:
    for name, text in written(found).items():
        kept = (EXAMPLES / name).read_text(encoding="utf-8")
        assert kept == text, f"write {name} anew: PYTHONPATH=src:tests python tests/drilled.py"


def stamped(words: str) -> list[str]:
    """Return the times of day to the second at which the launcher's log says so."""
    return re.findall(
        rf"^\[\S+ (\d\d:\d\d:\d\d),\d+\].*{words}", LAUNCHER_LOG.read_text(), re.MULTILINE
    )


@pytest.mark.parametrize(
    ("in_log", "source", "in_timeline"),
    [
        ("Did not get subsequent heartbeat", "launcher log", "heartbeat timeout"),
        (r"failed \(exitcode: -9\) local_rank: 0", "headway run", "signal 9"),
        ("Stopping workers", "launcher", "stops what is left"),
        ("joined round 1 of the rendezvous", "rank", "attempt 2: process starts, round 1"),
    ],
)
def test_what_the_log_says_stands_in_the_timeline_within_a_second(
    found: Postmortem, in_log: str, source: str, in_timeline: str
) -> None:
    logged = {_second(one) for one in stamped(in_log)}
    assert logged
    told = [
        line.time // 10**9 % 86_400
        for line in found.timeline
        if line.source == source and in_timeline in line.words
    ]
    assert told
    assert all(any(abs(second - time) <= 1 for time in told) for second in logged)


def test_the_steps_and_the_checkpoint_are_those_of_the_log(found: Postmortem) -> None:
    log = LAUNCHER_LOG.read_text()
    assert "injecting hang planned after step 25 into rank 1" in log
    assert "resumed from step-000020: 20 steps are done" in log
    assert found.suspect.rank == 1
    assert found.cost.rollback_steps == 25 - 20
    assert found.recovery.restored is not None
    assert found.recovery.restored.checkpoint == "step-000020"


def test_the_example_holds_no_path_of_a_machine() -> None:
    for path in (*EXAMPLES.glob("postmortem.*"), LAUNCHER_LOG):
        assert not re.search(r"/(?:root|home|work)/", path.read_text(encoding="utf-8")), path


def _second(time: str) -> int:
    hours, minutes, seconds = map(int, time.split(":"))
    return 3_600 * hours + 60 * minutes + seconds


def test_the_examples_are_where_the_documentation_says() -> None:
    page = (EXAMPLES.parent / "postmortem.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([^)#]+)\)", page)
    missing = [one for one in linked if not (EXAMPLES.parent / one).exists()]
    assert missing == []
    assert Path("examples/postmortem.md") in map(Path, linked)
