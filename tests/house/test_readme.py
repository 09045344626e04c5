"""The lines of the README that adopt the recorder do what they say."""

import re
from pathlib import Path

import pytest

from headway.events import CheckpointFinalized, Resumed, RunEnded, Steps
from headway.exporter.spooling.reader import SpoolReader, spools

ROOT = Path(__file__).parents[2]


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Send what the README's lines record to a folder of the test's own."""
    monkeypatch.setenv("HEADWAY_SPOOL", str(tmp_path))
    monkeypatch.setenv("HEADWAY_RUN_ID", "1")
    return tmp_path


def test_the_lines_that_adopt_the_recorder_record_the_training(spool: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    saved: list[int] = []
    names = {"restored": 40, "loader": range(200), "train": float, "save": saved.append}

    exec(compile(program, "README.md", "exec"), names)  # noqa: S102  # our own README

    (folder,) = spools(spool)
    read = SpoolReader(folder).read(limit=1000)
    events = [envelope.event for envelope in read.envelopes]
    assert saved == [100, 200]
    assert [event.step for event in events if isinstance(event, CheckpointFinalized)] == saved
    assert [event.completed for event in events if isinstance(event, Resumed)] == [40]
    steps = [event for event in events if isinstance(event, Steps)]
    assert min(event.first_step for event in steps) == 41
    assert any(isinstance(event, RunEnded) for event in events)
    assert read.finished
    assert {envelope.run for envelope in read.envelopes} == {"llama-8b-1"}


def test_the_pages_and_pictures_that_it_names_are_there() -> None:
    text = (ROOT / "README.md").read_text("utf-8")

    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        assert (ROOT / target).is_file(), target
