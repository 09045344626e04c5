"""What a training program records, and what its mistakes and deaths leave behind."""

import contextlib
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import headway.exporter
from headway.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointScheduled,
    Dropped,
    Fault,
    Misuse,
    Note,
    PhaseBegan,
    PhaseEnded,
    Resumed,
    RunEnded,
    RunStarted,
    Steps,
)
from headway.exporter import Recorder, identity
from headway.exporter.spooling.layout import AGENT_MARKER, BLOCK
from headway.exporter.spooling.reader import spools
from headway.settings import RecorderSettings
from recording import Clock, events, of, read, readers, record, step_numbers, steps

SECOND = 1_000_000_000


def test_the_package_exports_these_names() -> None:
    assert headway.exporter.__all__ == ["Phase", "Recorder", "StepTimer"]
    assert all(hasattr(headway.exporter, name) for name in headway.exporter.__all__)


def test_an_attempt_tells_which_devices_its_rank_may_see_and_who_gave_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    record(tmp_path, rank=0).close()
    (started,) = of(tmp_path, AttemptStarted)
    assert (started.visible_devices, started.scheduler) == ("2,3", "kubernetes")


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


def test_waiting_for_a_batch_belongs_to_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = record(tmp_path)
    clock = Clock(monkeypatch, time.monotonic_ns())

    def loader() -> Iterator[str]:
        for batch in "ab":
            clock.now += 3 * SECOND
            yield batch

    seen = []
    for number, batch in enumerate(recorder.batches(loader()), start=1):
        seen.append(batch)
        with recorder.step(number):
            clock.now += SECOND
    assert seen == ["a", "b"]
    waits = [step.data_wait for _, step in steps(read(tmp_path).envelopes)]
    assert waits == [3 * SECOND, 3 * SECOND]


def test_a_wait_inside_a_step_is_part_of_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = record(tmp_path)
    clock = Clock(monkeypatch, time.monotonic_ns())

    def loader() -> Iterator[int]:
        while True:
            clock.now += SECOND
            yield 0

    batches = recorder.batches(loader())
    for number in (1, 2):
        next(batches)
        with recorder.step(number):
            next(batches)
    waits = [step.data_wait for _, step in steps(read(tmp_path).envelopes)]
    assert waits == [SECOND, SECOND]


def test_a_wait_that_lasts_is_seen_as_an_open_phase_from_outside(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    (reader,) = readers(tmp_path)
    seen = []

    def loader() -> Iterator[int]:
        seen.append(reader.status())
        yield 0

    before = time.monotonic_ns()
    for _ in recorder.batches(loader()):
        seen.append(reader.status())
    waiting, training = seen
    (opened,) = waiting.open_phases
    assert opened.phase == "data_wait"
    assert before <= opened.began <= waiting.last_activity
    assert training.open_phases == ()


def test_a_wait_between_two_calls_belongs_to_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = record(tmp_path)
    (reader,) = readers(tmp_path)
    clock = Clock(monkeypatch, time.monotonic_ns())
    recorder.batch_arrived()  # nobody waited
    for number in (1, 2):
        recorder.batch_awaited()
        clock.now += 9 * SECOND
        recorder.batch_awaited()  # what came in between was no wait
        clock.now += 3 * SECOND
        (opened,) = reader.status().open_phases
        assert opened.phase == "data_wait"
        recorder.batch_arrived()
        assert reader.status().open_phases == ()
        with recorder.step(number):
            clock.now += SECOND
            recorder.batch_awaited()
            clock.now += SECOND
            recorder.batch_arrived()
    recorded = [step for _, step in steps(read(tmp_path).envelopes)]
    assert [step.data_wait for step in recorded] == [3 * SECOND, 3 * SECOND]
    assert [step.duration for step in recorded] == [2 * SECOND, 2 * SECOND]


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


def test_a_step_that_an_exception_leaves_is_not_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = record(tmp_path)
    clock = Clock(monkeypatch, time.monotonic_ns())
    with recorder.step(1):
        clock.now += SECOND
    error = RuntimeError("boom")
    with contextlib.suppress(RuntimeError), recorder.step(2):
        clock.now += 4 * SECOND
        raise error
    failed_at = clock.now
    clock.now += SECOND
    recorder.exception(error)
    recorder.exception(error)
    assert step_numbers(tmp_path) == [1]
    began, ended, fault = read(tmp_path).envelopes[-3:]
    assert began.event == PhaseBegan(phase="step")
    assert began.monotonic == failed_at - 4 * SECOND
    assert ended.event == PhaseEnded(phase="step", duration=4 * SECOND, error="RuntimeError")
    assert isinstance(fault.event, Fault)
    assert (fault.event.kind, fault.event.phase, fault.event.step) == ("exception", "step", 2)
    assert fault.monotonic == failed_at
    assert "raise error" in (fault.event.traceback or "")


def test_a_phase_that_an_exception_leaves_says_so_and_the_innermost_is_named(
    tmp_path: Path,
) -> None:
    recorder = record(tmp_path)
    error = OSError("no space")
    with (
        pytest.raises(OSError, match="no space"),
        recorder.phase("startup"),
        recorder.phase("checkpoint_load"),
    ):
        raise error
    recorder.end_attempt(error)
    ended = of(tmp_path, PhaseEnded)
    assert [(event.phase, event.error) for event in ended] == [
        ("checkpoint_load", "OSError"),
        ("startup", "OSError"),
    ]
    (fault,) = of(tmp_path, Fault)
    assert fault.phase == "checkpoint_load"
    assert isinstance(events(tmp_path)[-1], AttemptEnded)


def test_a_loader_that_fails_leaves_its_wait_as_a_phase(tmp_path: Path) -> None:
    recorder = record(tmp_path)

    def loader() -> Iterator[int]:
        yield 0
        raise OSError("shard gone")

    with pytest.raises(OSError, match="shard gone"):
        list(recorder.batches(loader()))
    (ended,) = of(tmp_path, PhaseEnded)
    assert (ended.phase, ended.error) == ("data_wait", "OSError")


def test_torchs_memory_error_is_a_gpu_fault(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    kind = type("OutOfMemoryError", (RuntimeError,), {"__module__": "torch"})
    recorder.exception(kind("CUDA out of memory"))
    (fault,) = of(tmp_path, Fault)
    assert (fault.kind, fault.exception) == ("gpu_oom", "torch.OutOfMemoryError")


@pytest.mark.parametrize(
    ("words", "waited"),
    [
        (
            "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:129] Timed out "
            "waiting 20000ms for send operation to complete",
            (20 * SECOND, 20 * SECOND),
        ),
        (
            "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=33, "
            "OpType=ALLREDUCE, Timeout(ms)=600000) ran for 607565 milliseconds before timing out.",
            (600 * SECOND, 607_565_000_000),
        ),
    ],
    ids=["gloo", "nccl"],
)
def test_a_collective_that_took_too_long_is_no_exception_of_its_rank(
    tmp_path: Path, words: str, waited: tuple[int, int]
) -> None:
    recorder = record(tmp_path)
    recorder.exception(RuntimeError(words))
    (fault,) = of(tmp_path, Fault)
    assert fault.kind == "collective_timeout"
    assert (fault.timeout, fault.ran_for) == waited


def test_an_exception_struck_when_it_was_told_not_when_its_words_were_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, now=10 * SECOND)

    class SlowError(Exception):
        def __str__(self) -> str:
            clock.now = 12 * SECOND
            return "slow words"

    recorder = record(tmp_path)
    recorder.exception(SlowError())
    (told,) = [e.monotonic for e in read(tmp_path).envelopes if isinstance(e.event, Fault)]
    assert told == 10 * SECOND


def test_an_exception_whose_words_cannot_be_had_costs_only_its_fault(tmp_path: Path) -> None:
    class RudeError(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    recorder = record(tmp_path)
    recorder.exception(RudeError())
    assert recorder.suppressed_failures == 1
    with recorder.step(1):
        pass
    assert step_numbers(tmp_path) == [1]
    assert [event.kind for event in of(tmp_path, Misuse)] == ["internal_error"]


# Attempts


def test_the_first_attempt_began_when_the_process_did(tmp_path: Path) -> None:
    record(tmp_path)
    announced, started = read(tmp_path).envelopes
    assert announced.event == RunStarted(run_name="llama")
    assert isinstance(started.event, AttemptStarted)
    assert started.event.layer == "scheduler"
    assert started.event.process_id == os.getpid()
    expected = identity.process_started()
    assert expected is not None
    assert abs(started.monotonic - expected) < SECOND
    assert abs(started.wall - started.anchor - started.monotonic) < SECOND


def test_each_iteration_in_process_is_an_attempt_and_iteration_0_is_the_processs(
    tmp_path: Path,
) -> None:
    recorder = record(tmp_path)
    recorder.attempt(layer="in_process", iteration=0)
    with recorder.step(1):
        pass
    before = time.monotonic_ns()
    recorder.attempt(layer="in_process", iteration=1, world_size=2)
    with recorder.step(1):
        pass
    batch = read(tmp_path)
    _, first, one, ended, second, again = batch.envelopes
    assert first.attempt == one.attempt == ended.attempt
    assert second.attempt == again.attempt != first.attempt
    assert isinstance(ended.event, AttemptEnded)
    assert isinstance(second.event, AttemptStarted)
    assert (second.event.iteration, second.event.world_size) == (1, 2)
    assert second.monotonic >= before
    assert of(tmp_path, Misuse) == []


def test_under_torchelastic_ranks_of_a_round_share_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job")
    monkeypatch.setenv("WORLD_SIZE", "2")
    attempts = []
    for restarts in ("0", "1"):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", restarts)
        for rank in ("0", "1"):
            monkeypatch.setenv("RANK", rank)
            recorder = record(tmp_path / f"{restarts}{rank}")
            envelope = read(tmp_path / f"{restarts}{rank}").envelopes[-1]
            assert isinstance(envelope.event, AttemptStarted)
            assert envelope.event.layer == "launcher"
            assert envelope.rank == int(rank)
            attempts.append(envelope.attempt)
            recorder.close()
    assert attempts[0] == attempts[1] != attempts[2] == attempts[3]


def test_a_run_without_any_identity_announces_itself(tmp_path: Path) -> None:
    (tmp_path / AGENT_MARKER).touch()
    checkpoints = tmp_path / "checkpoints"
    settings = RecorderSettings(spool=tmp_path)
    first = Recorder("llama", checkpoints=checkpoints, settings=settings)
    first.close()
    run = read(tmp_path).envelopes[0].run
    assert isinstance(events(tmp_path)[0], RunStarted)
    other = tmp_path / "later"
    other.mkdir()
    (other / AGENT_MARKER).touch()
    Recorder("llama", checkpoints=checkpoints, settings=RecorderSettings(spool=other)).close()
    assert read(other).envelopes[0].run == run
    assert of(other, RunStarted) == []


# Misuse


def test_a_step_that_does_not_follow_is_recorded_and_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = record(tmp_path)
    recorder.resumed(completed=4)
    for number in (5, 7, 3):
        with recorder.step(number):
            pass
    assert step_numbers(tmp_path) == [5, 7, 3]
    (misuse,) = of(tmp_path, Misuse)
    assert misuse.kind == "step_order"
    assert misuse.detail == (
        "step 7 follows where step 6 was expected; call `resumed` after loading a checkpoint"
    )
    assert caplog.text.count("step 7") == 1


def test_a_phase_inside_itself_counts_once(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    with recorder.phase("evaluation"), recorder.phase("evaluation"):
        pass
    with recorder.phase("evaluation"):
        pass
    assert len(of(tmp_path, PhaseBegan)) == len(of(tmp_path, PhaseEnded)) == 2
    assert [event.kind for event in of(tmp_path, Misuse)] == ["nested_phase"]


def test_an_unknown_phase_becomes_a_custom_one(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    with recorder.phase("validate"):
        pass
    with recorder.phase(None):  # type: ignore[arg-type]
        pass
    assert of(tmp_path, PhaseBegan) == [PhaseBegan(phase="custom:validate")]
    (misuse,) = of(tmp_path, Misuse)
    assert "'validate'; known: startup" in (misuse.detail or "")


def test_a_step_inside_a_step_leaves_the_outer_one_uncounted(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    with recorder.step(1), recorder.step(2):
        pass
    with recorder.step(3):
        pass
    assert step_numbers(tmp_path) == [2, 3]
    assert [event.kind for event in of(tmp_path, Misuse)] == ["nested_step"]


@pytest.mark.parametrize("number", [-1, 2**40, "3", 1.5, None])
def test_a_step_without_a_proper_number_is_not_recorded(tmp_path: Path, number: object) -> None:
    recorder = record(tmp_path)
    with recorder.step(number) as step:  # type: ignore[arg-type]
        step.loss = 1.0
    with recorder.step(1):
        pass
    assert step_numbers(tmp_path) == [1]
    assert [event.kind for event in of(tmp_path, Misuse)] == ["step"]


class Tensor:
    """What a GPU tensor is to the recorder: reading it in any way would synchronise."""

    def _synchronise(self, *_: object) -> float:
        raise AssertionError("the recorder read a tensor")

    __float__ = __int__ = __index__ = __bool__ = __eq__ = __ne__ = _synchronise  # type: ignore[assignment]
    __sub__ = __repr__ = __str__ = item = __format__ = __hash__ = _synchronise  # type: ignore[assignment]


def test_a_tensor_is_refused_without_reading_it(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    with recorder.step(1) as step:
        step.loss = Tensor()  # type: ignore[assignment]
        step.samples = Tensor()  # type: ignore[assignment]
    with recorder.step(Tensor()):  # type: ignore[arg-type]
        pass
    recorder.resumed(completed=Tensor())  # type: ignore[arg-type]
    recorder.record(Tensor())  # type: ignore[arg-type]
    ((number, step_record),) = steps(read(tmp_path).envelopes)
    assert number == 1
    assert math.isnan(step_record.loss)
    assert step_record.samples == -1
    assert recorder.suppressed_failures == 0
    kinds = [event.kind for event in of(tmp_path, Misuse)]
    assert kinds == ["loss_type", "samples", "step", "resumed", "record"]


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_is_reported_once(tmp_path: Path, loss: float) -> None:
    recorder = record(tmp_path)
    for number in (1, 2):
        with recorder.step(number) as step:
            step.loss = loss
    assert step_numbers(tmp_path) == [1, 2]
    assert [event.kind for event in of(tmp_path, Misuse)] == ["loss"]


def test_whole_numbers_do_as_loss(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    with recorder.step(1) as step:
        step.loss = 2
    ((_, step_record),) = steps(read(tmp_path).envelopes)
    assert step_record.loss == 2.0


def test_an_event_that_does_not_fit_its_declaration_is_reported(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    recorder.record(CheckpointScheduled(checkpoint="a", step=-1))
    recorder.record(RunEnded(reason="bored"))
    recorder.record("run ended")  # type: ignore[arg-type]
    recorder.record(Steps(first_step=1, version=1, packed=b""))
    assert [event.kind for event in of(tmp_path, Misuse)] == ["event", "record"]
    assert of(tmp_path, CheckpointScheduled) == []


def test_a_second_recorder_of_the_rank_records_nothing_until_the_first_is_closed(
    tmp_path: Path,
) -> None:
    first = record(tmp_path)
    second = record(tmp_path)
    with second.step(1):
        pass
    other_rank = record(tmp_path, rank=1)
    first.close()
    other_rank.close()
    assert len(spools(tmp_path)) == 2
    batches = [reader.read() for reader in readers(tmp_path)]
    found = [envelope.event for batch in batches for envelope in batch.envelopes]
    assert [event.kind for event in found if isinstance(event, Misuse)] == ["second_recorder"]
    assert not any(isinstance(event, Steps) for event in found)
    record(tmp_path).close()
    assert len(spools(tmp_path)) == 3


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
