"""A spool that is full, cannot be made or goes away: told, and training goes on."""

import os
import time
from pathlib import Path

import pytest

from headway.events import Dropped, Note, Steps
from headway.exporter import Recorder
from headway.exporter.recording import recorder as recorder_module
from headway.exporter.spooling.layout import AGENT_MARKER, BLOCK, Producer
from headway.exporter.spooling.reader import spools
from headway.exporter.spooling.writer import SMALLEST_SEGMENT, SpoolWriter
from headway.settings import RecorderSettings
from recording import Clock, events, of, read, readers, record, step_numbers, steps

SECOND = 1_000_000_000


def test_an_unwritable_folder_is_reported_once_and_training_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a folder")
    recorder = Recorder("llama", settings=RecorderSettings(spool=tmp_path / "file", run_id="7"))
    _use_everything(recorder)
    assert caplog.text.count("nothing is recorded; set HEADWAY_SPOOL") == 1
    assert len(caplog.records) == 1


def test_a_wrong_setting_is_reported_and_training_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HEADWAY_RECORDER_SPOOL_LIMIT", "lots")
    recorder = Recorder("llama")
    _use_everything(recorder)
    assert "headway: spool_limit must be int, got 'lots' from HEADWAY_REC" in caplog.text
    assert "; nothing is recorded" in caplog.text
    assert len(caplog.records) == 1


def test_a_misspelled_variable_is_told_once_and_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HEADWAY_SPOL", "/elsewhere")
    recorder = Recorder("llama", settings=RecorderSettings(spool=tmp_path, run_id="7"))
    _use_everything(recorder)
    assert caplog.text.count("nothing reads the variable HEADWAY_SPOL; did you mean ") == 1
    assert recorder.suppressed_failures == 0


def test_a_disabled_recorder_leaves_no_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = RecorderSettings(spool=tmp_path / "spool", enabled=False)
    _use_everything(Recorder("llama", settings=settings))
    assert not (tmp_path / "spool").exists()
    assert caplog.records == []


def _use_everything(recorder: Recorder) -> None:
    with recorder.phase("startup"):
        recorder.resumed(completed=0)
    for number, _ in enumerate(recorder.batches(range(2)), start=1):
        with recorder.step(number) as step:
            step.loss = 1.0
    with pytest.raises(ValueError, match="boom"), recorder.step(3):
        raise ValueError("boom")
    recorder.attempt(layer="in_process", iteration=1)
    recorder.record(Note(text="x"))
    recorder.exception(ValueError("x"))
    recorder.end_attempt()
    recorder.close()


def test_a_full_spool_drops_counts_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limit = 64 * 1024
    recorder = record(tmp_path, spool_limit=limit)
    total = 3 * limit // BLOCK
    for number in range(1, total + 1):
        with recorder.step(number):
            pass
    (reader,) = readers(tmp_path)
    assert reader.status().dropped > 0
    recorder.close()
    (folder,) = spools(tmp_path)
    assert sum(path.stat().st_size for path in folder.glob("*.segment")) <= limit
    batch = read(tmp_path)
    kept = [number for number, _ in steps(batch.envelopes)]
    assert kept == list(range(1, len(kept) + 1))
    (dropped,) = of(tmp_path, Dropped)
    facts = sum(not isinstance(event, Steps) for event in events(tmp_path))
    assert dropped.count == total - len(kept) + 1  # and the end of the attempt
    assert facts == 3
    assert batch.damaged == 0
    (message,) = [entry.getMessage() for entry in caplog.records]
    assert "the spool has no room: its limit is 65536 bytes; records are dropped" in message


def test_a_spool_that_was_full_records_again_once_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = record(tmp_path, spool_limit=64 * 1024)
    clock = Clock(monkeypatch, time.monotonic_ns())
    for number in range(1, 3001):
        with recorder.step(number):
            pass
    (reader,) = readers(tmp_path)
    batch = reader.read(limit=10**9)
    before = len(steps(batch.envelopes))
    assert before < 3000
    reader.release(batch.position)
    clock.now += 2 * SECOND
    with recorder.step(3001):
        pass
    after = reader.read(batch.position)
    dropped, step = after.envelopes
    assert dropped.event == Dropped(
        count=3000 - before,
        reason="spool of 65536 bytes or its disk full, event too large, or writer stuck",
    )
    assert [number for number, _ in steps([step])] == [3001]
    assert dropped.first_sequence == batch.envelopes[-1].last_sequence + 1


def test_a_relative_spool_stays_where_it_was_when_the_program_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recorder = record(Path("spool"), spool_limit=8 * SMALLEST_SEGMENT)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    total = 2 * SMALLEST_SEGMENT // BLOCK
    for number in range(1, total + 1):
        with recorder.step(number):
            pass
    recorder.close()
    assert step_numbers(tmp_path / "spool") == list(range(1, total + 1))


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("broken", ["_open_segment", "_create_header"])
def test_a_spool_that_cannot_be_made_leaves_no_file_and_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    whole = getattr(SpoolWriter, broken)

    def fail(writer: SpoolWriter) -> None:
        whole(writer)
        raise OSError(28, "No space left on device")

    before = _descriptors()
    monkeypatch.setattr(SpoolWriter, broken, fail)
    recorder = record(tmp_path)
    with recorder.step(1):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [AGENT_MARKER]
    del recorder
    assert _descriptors() == before


def test_a_spool_whose_identity_has_no_room_leaves_nothing_behind(tmp_path: Path) -> None:
    producer = Producer(
        producer="0" * 32,
        anchor=0,
        run="x" * 5000,
        rank=0,
        node=None,
        boot_id=None,
        process_id=1,
    )
    before = _descriptors()
    with pytest.raises(IndexError):
        SpoolWriter(tmp_path, producer, 2**20)
    assert list(tmp_path.iterdir()) == []
    assert _descriptors() == before


def test_a_folder_that_goes_away_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = record(tmp_path, spool_limit=8 * SMALLEST_SEGMENT)
    (folder,) = spools(tmp_path)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    for number in range(1, 2 * SMALLEST_SEGMENT // BLOCK):
        with recorder.step(number):
            pass
    assert caplog.text.count("the spool has no room") == 1
    assert "No such file or directory" in caplog.text
    assert recorder.suppressed_failures == 0


@pytest.mark.slow
def test_closing_tells_so_however_much_is_pending(tmp_path: Path) -> None:
    recorder = record(tmp_path, exit_delay=0.0)
    writer = recorder._writer
    assert writer is not None
    writer.busy = True  # as when a thread is stuck in the writer
    for _ in range(5000):
        recorder.record(Note(text="x"))
    recorder.close()
    writer.busy = False
    writer.drain()
    batch = read(tmp_path)
    assert batch.finished
    assert recorder_module._closed > 0
