"""What a training program records is what a reader finds."""

import os
import time
from pathlib import Path

import pytest

import headway.exporter
from headway.events import CheckpointScheduled, PhaseBegan, PhaseEnded, Resumed
from recording import Clock, read, readers, record, steps

SECOND = 1_000_000_000


def test_the_package_exports_these_names() -> None:
    assert headway.exporter.__all__ == ["Phase", "Recorder", "StepTimer"]
    assert all(hasattr(headway.exporter, name) for name in headway.exporter.__all__)


def test_a_run_is_read_back_as_it_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = record(tmp_path, rank=3)
    began = time.monotonic_ns()
    clock = Clock(monkeypatch, began)
    with recorder.phase("startup"):
        clock.now += SECOND
    recorder.resumed(completed=10, checkpoint="step_10")
    for number in (11, 12):
        with recorder.step(number) as step:
            clock.now += 2 * SECOND
            step.loss = 1.5
            step.samples = number * 8
    recorder.record(CheckpointScheduled(checkpoint="step_12", step=12, blocking=5))
    recorder.close()

    batch = read(tmp_path)
    assert batch.finished
    assert batch.damaged == 0
    assert [envelope.event.name for envelope in batch.envelopes] == [
        "attempt.started",
        "phase.began",
        "phase.ended",
        "resumed",
        "steps",
        "checkpoint.scheduled",
        "attempt.ended",
    ]
    _, opened, closed, resumed, both, _, _ = batch.envelopes
    assert opened.event == PhaseBegan(phase="startup")
    assert opened.monotonic == began
    assert closed.event == PhaseEnded(phase="startup", duration=SECOND)
    assert resumed.event == Resumed(completed=10, checkpoint="step_10")
    assert steps([both]) == [
        (11, (began + SECOND, 2 * SECOND, 0, 1.5, 88)),
        (12, (began + 3 * SECOND, 2 * SECOND, 0, 1.5, 96)),
    ]
    assert (both.first_sequence, both.last_sequence) == (4, 5)
    assert both.monotonic == began + 5 * SECOND
    assert {envelope.run for envelope in batch.envelopes} == {"llama-7"}
    assert {envelope.rank for envelope in batch.envelopes} == {3}
    assert len({envelope.attempt for envelope in batch.envelopes}) == 1


def test_the_status_names_open_phases_and_the_last_step(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    (reader,) = readers(tmp_path)
    with recorder.step(1):
        pass
    with recorder.phase("evaluation"), recorder.phase("custom:inner"):
        status = reader.status()
    assert [opened.phase for opened in status.open_phases] == ["evaluation", "custom:inner"]
    assert (status.last_step, status.alive, status.closed) == (1, True, False)
    assert status.process_id == os.getpid()
    with recorder.step(2):
        assert [opened.phase for opened in reader.status().open_phases] == ["step"]
    assert reader.status().open_phases == ()
    recorder.close()
    assert (reader.status().alive, reader.status().closed) == (False, True)
