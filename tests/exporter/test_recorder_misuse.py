"""What programs get wrong costs at most the record, and is said once."""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from headway.events import (
    AttemptStarted,
    CheckpointScheduled,
    Fault,
    Misuse,
    Note,
    PhaseBegan,
    PhaseEnded,
    RunConfigured,
    RunStarted,
    StopAnnounced,
)
from headway.exporter import Recorder
from headway.exporter.recording import recorder as recorder_module
from headway.exporter.spooling.layout import AGENT_MARKER, BLOCK, Producer
from headway.exporter.spooling.reader import SpoolReader, spools
from headway.exporter.spooling.writer import SMALLEST_SEGMENT, SpoolWriter
from headway.settings import RecorderSettings
from recording import Clock, environment, of, read, record, step_numbers, steps

SECOND = 1_000_000_000


def kinds(folder: Path) -> list[str]:
    return [event.kind for event in of(folder, Misuse)]


# Values


@pytest.mark.parametrize("loss", [10**400, Fraction(10**400, 3), -(10**400)])
def test_a_loss_beyond_all_floats_costs_only_the_loss(tmp_path: Path, loss: float) -> None:
    recorder = record(tmp_path)
    with recorder.step(1) as step:
        step.loss = loss
    assert step_numbers(tmp_path) == [1]
    assert kinds(tmp_path) == ["loss"]


class Unbound:
    """As a proxy without its object: every look at it raises."""

    @property
    def __class__(self) -> type:
        raise RuntimeError("not bound")

    @__class__.setter
    def __class__(self, kind: type) -> None:
        raise RuntimeError("not bound")


def test_values_that_raise_when_they_are_looked_at_cost_only_themselves(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    with recorder.step(1) as step:
        step.loss = Unbound()  # type: ignore[assignment]
        step.samples = Unbound()  # type: ignore[assignment]
    with recorder.step(Unbound()):  # type: ignore[arg-type]
        pass
    recorder.resumed(Unbound())  # type: ignore[arg-type]
    recorder.record(Unbound())  # type: ignore[arg-type]
    assert step_numbers(tmp_path) == [1]
    assert kinds(tmp_path) == ["internal_error"]


@pytest.mark.parametrize("samples", [2**63, -5])
def test_a_count_of_samples_that_cannot_be_costs_only_the_count(
    tmp_path: Path, samples: int
) -> None:
    recorder = record(tmp_path)
    with recorder.step(1) as step:
        step.samples = samples
    ((_, found),) = steps(read(tmp_path).envelopes)
    assert found.samples == -1
    assert kinds(tmp_path) == ["samples"]


def test_step_numbers_of_other_libraries_become_pythons_own(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    recorder = record(tmp_path)
    for number in (254, 255):
        with recorder.step(numpy.uint8(number)):
            pass
    with recorder.step(256):
        pass
    assert step_numbers(tmp_path) == [254, 255, 256]
    assert kinds(tmp_path) == []


def test_resuming_beyond_every_step_is_refused(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    recorder.resumed(completed=2**63)
    with recorder.step(2**63 + 1):
        pass
    assert kinds(tmp_path) == ["resumed", "step"]


class Tensor:
    """Stands for a GPU tensor: to print it is to read it."""

    def __repr__(self) -> str:
        raise AssertionError("the recorder read a tensor")


def test_a_tensor_in_an_event_is_left_out_unread(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    recorder.record(
        CheckpointScheduled(checkpoint="a", step=1, blocking=Tensor())  # type: ignore[arg-type]
    )
    recorder.record(RunConfigured(options={"scale": Tensor()}))  # type: ignore[dict-item]
    recorder.record(Note(text=Tensor()))  # type: ignore[arg-type]
    assert of(tmp_path, CheckpointScheduled) == [CheckpointScheduled(checkpoint="a", step=1)]
    assert [getattr(one, "options", ...) for one in of(tmp_path, RunConfigured)] == [None]
    assert recorder.suppressed_failures == 0
    assert kinds(tmp_path) == ["field", "event"]


@dataclass(frozen=True)
class FrozenError(Exception):
    """An exception on which nothing can be noted the usual way."""

    code: int


def test_an_exception_that_cannot_be_changed_is_a_fault_like_any_other(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    error = FrozenError(7)
    try:
        with recorder.phase("startup"), recorder.step(1):
            raise error
    except FrozenError:
        recorder.exception(error)
        recorder.exception(error)
    with recorder.step(1):
        pass
    (fault,) = of(tmp_path, Fault)
    assert (fault.phase, fault.step) == ("step", 1)
    assert [event.phase for event in of(tmp_path, PhaseEnded)] == ["step", "startup"]
    assert step_numbers(tmp_path) == [1]
    assert kinds(tmp_path) == []


def test_an_exception_whose_words_are_itself_does_not_reach_the_training(tmp_path: Path) -> None:
    class LoopError(Exception):
        def __str__(self) -> str:
            raise LoopError

    recorder = record(tmp_path)
    recorder.exception(LoopError())
    assert recorder.suppressed_failures == 1
    assert kinds(tmp_path) == ["internal_error"]


def test_a_log_handler_that_raises_does_not_reach_the_training(tmp_path: Path) -> None:
    class Broken(logging.Filter):
        def filter(self, _: logging.LogRecord) -> bool:
            raise RuntimeError("broken filter")

    broken = Broken()
    logger = logging.getLogger("headway")
    logger.addFilter(broken)
    try:
        recorder = record(tmp_path)
        with recorder.step("1"):  # type: ignore[arg-type]
            pass
        with recorder.step(1) as step:
            step.loss = float("nan")
    finally:
        logger.removeFilter(broken)
    assert kinds(tmp_path) == ["step", "loss"]


def test_a_persons_interrupt_is_a_stop_and_a_good_exit_is_nothing(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), recorder.step(1):
        raise error
    recorder.exception(error)
    recorder.exception(error)
    recorder.exception(SystemExit(0))
    assert of(tmp_path, Fault) == []
    assert of(tmp_path, StopAnnounced) == [StopAnnounced(reason="operator")]
    recorder.end_attempt(SystemExit("no data"))
    assert [fault.message for fault in of(tmp_path, Fault)] == ["no data"]


def test_an_error_of_an_interactive_session_is_not_what_ended_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = record(tmp_path)
    monkeypatch.setattr(sys, "last_value", NameError("a typo, long ago"), raising=False)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    recorder._at_exit()
    assert of(tmp_path, Fault) == []


# Who a recorder speaks for


@pytest.mark.parametrize(
    "name", ["org/llama 8b", "\u6a21\u578b-\U0001f999", "a\nb", "\ud800", "x" * 5000]
)
def test_any_name_of_a_run_can_be_recorded(tmp_path: Path, name: str) -> None:
    (tmp_path / AGENT_MARKER).touch()
    recorder = Recorder(name, settings=RecorderSettings(spool=tmp_path, run_id="7" * 500))
    with recorder.step(1):
        pass
    recorder.close()
    batch = read(tmp_path)
    assert (batch.damaged, batch.finished) == (0, True)
    (started,) = of(tmp_path, RunStarted)
    assert started.run_name == name[:120].replace("\ud800", "?")
    assert (batch.envelopes[0].run or "").startswith(f"{started.run_name}-")
    assert kinds(tmp_path) == (["run_name"] if len(name) > 120 else [])


def test_the_widest_name_of_a_run_has_room(tmp_path: Path) -> None:
    (tmp_path / AGENT_MARKER).touch()
    settings = RecorderSettings(spool=tmp_path, run_id="\U0001f999" * 120)
    Recorder("\U0001f999" * 120, settings=settings).close()
    assert read(tmp_path).damaged == 0


def test_a_rank_as_the_environment_spells_it_is_that_rank(tmp_path: Path) -> None:
    record(tmp_path, rank="3").close()  # type: ignore[arg-type]
    assert {envelope.rank for envelope in read(tmp_path).envelopes} == {3}


def test_a_rank_that_is_none_is_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "2")
    record(tmp_path, rank=1.5).close()  # type: ignore[arg-type]
    assert {envelope.rank for envelope in read(tmp_path).envelopes} == {2}
    assert kinds(tmp_path) == ["rank"]


def test_checkpoints_that_cannot_keep_the_runs_id_cost_only_that(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / AGENT_MARKER).touch()
    settings = RecorderSettings(spool=tmp_path)
    recorder = Recorder("llama", checkpoints=tmp_path / "file" / "x", settings=settings)
    with recorder.step(1):
        pass
    assert step_numbers(tmp_path) == [1]
    assert kinds(tmp_path) == ["run_id"]
    assert "which a later job will not share; set HEADWAY_RUN_ID" in caplog.text


def test_checkpoints_in_an_object_store_are_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = RecorderSettings(spool=tmp_path / "spool")
    recorder = Recorder("llama", checkpoints="s3://bucket/llama", settings=settings)  # type: ignore[arg-type]
    recorder.close()
    assert [path.name for path in tmp_path.iterdir()] == ["spool"]
    assert kinds(tmp_path / "spool") == ["run_id"]


def test_nodes_that_know_their_run_by_its_address_alone_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A static launcher has the same address every time."""
    (tmp_path / AGENT_MARKER).touch()
    launched = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
    for name, value in {**launched, "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        settings = RecorderSettings(spool=tmp_path / rank)
        Recorder("llama", settings=settings).close()
    assert (kinds(tmp_path / "0"), kinds(tmp_path / "1")) == (["run_id"], [])
    settings = RecorderSettings(spool=tmp_path / "known", run_id="7")
    Recorder("llama", settings=settings).close()
    assert kinds(tmp_path / "known") == []


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


def test_a_launch_that_a_launcher_or_scheduler_names_says_what_its_run_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`headway report NAME` finds a run by the name in its `run.started`."""
    (tmp_path / AGENT_MARKER).touch()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job")
    for rank, restarts in (("0", "0"), ("1", "0"), ("0", "1")):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", restarts)
        settings = RecorderSettings(spool=tmp_path / f"{rank}-{restarts}")
        Recorder("llama", settings=settings).close()
    assert of(tmp_path / "0-0", RunStarted) == [RunStarted(run_name="llama")]
    assert of(tmp_path / "1-0", RunStarted) == of(tmp_path / "0-1", RunStarted) == []


def test_the_rank_that_makes_the_runs_id_says_that_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in ("1", "0"):
        monkeypatch.setenv("RANK", rank)
        settings = RecorderSettings(spool=tmp_path / rank)
        Recorder("llama", checkpoints=tmp_path / "checkpoints", settings=settings).close()
    assert of(tmp_path / "1", RunStarted) == [RunStarted(run_name="llama")]
    assert of(tmp_path / "0", RunStarted) == []


def test_each_start_of_ranks_in_one_slurm_job_is_an_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "99")
    attempts = []
    for step in ("0", "1"):
        monkeypatch.setenv("SLURM_STEP_ID", step)
        settings = RecorderSettings(spool=tmp_path / step)
        Recorder("llama", settings=settings).close()
        attempts.append(read(tmp_path / step).envelopes[-1].attempt)
    assert attempts[0] != attempts[1]


def test_a_program_that_trains_again_begins_again(tmp_path: Path) -> None:
    found = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / AGENT_MARKER).touch()
        before = time.monotonic_ns()
        Recorder("sweep", settings=RecorderSettings(spool=folder)).close()
        (started,) = [e for e in read(folder).envelopes if isinstance(e.event, AttemptStarted)]
        found.append((started.run, started.attempt, started.monotonic >= before))
    (first, second) = found
    assert first[0] != second[0]
    assert first[1] != second[1]
    assert second[2]  # not when the process started, long before


def test_two_programs_from_one_shell_are_two_runs(tmp_path: Path) -> None:
    program = "from headway.exporter import Recorder\nRecorder('llama').close()\n"
    (tmp_path / AGENT_MARKER).touch()
    for _ in range(2):
        where = {**environment(), "HEADWAY_SPOOL": str(tmp_path)}
        subprocess.run([sys.executable, "-c", program], env=where, check=True)
    runs = spools(tmp_path)
    assert len(runs) == 2

    batches = [SpoolReader(path).read() for path in runs]
    assert len({batch.envelopes[0].run for batch in batches}) == 2
    assert len({batch.envelopes[-1].attempt for batch in batches}) == 2


_TOP_LEVEL = """
import multiprocessing, sys
from pathlib import Path
from recording import record, step_numbers
recorder = record(Path(sys.argv[1]))

def work():
    with recorder.step(1):
        pass

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == 0
    with recorder.step(1):
        pass
"""


@pytest.mark.slow
def test_a_spawned_worker_that_runs_the_programs_top_level_again_records_nothing(
    tmp_path: Path,
) -> None:
    program = tmp_path / "train.py"
    program.write_text(_TOP_LEVEL)
    spool = tmp_path / "spool"
    command = [sys.executable, str(program), str(spool)]
    subprocess.run(command, env=environment(), check=True, timeout=60)
    assert len(spools(spool)) == 1
    assert step_numbers(spool) == [1]


# Waits


def test_a_wait_before_something_else_than_its_step_is_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = record(tmp_path)
    began = time.monotonic_ns()
    clock = Clock(monkeypatch, began)

    def loader() -> Iterator[int]:
        clock.now += 3 * SECOND
        yield 0

    for _ in recorder.batches(loader()):
        with recorder.phase("evaluation"):
            clock.now += 60 * SECOND
        with recorder.step(1):
            clock.now += SECOND
    ((_, step),) = steps(read(tmp_path).envelopes)
    assert step.data_wait == 0
    wait_began, wait_ended, evaluation, _ = read(tmp_path).envelopes[2:6]
    assert wait_began.event == PhaseBegan(phase="data_wait")
    assert wait_began.monotonic == began
    assert wait_ended.event == PhaseEnded(phase="data_wait", duration=3 * SECOND)
    assert wait_ended.monotonic == evaluation.monotonic == began + 3 * SECOND


def test_the_end_of_the_data_seen_inside_a_step_is_part_of_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = record(tmp_path)
    clock = Clock(monkeypatch, time.monotonic_ns())

    def loader() -> Iterator[int]:
        clock.now += 3 * SECOND
        yield from ()

    with recorder.step(1):
        assert list(recorder.batches(loader())) == []
    ((_, step),) = steps(read(tmp_path).envelopes)
    assert (step.data_wait, step.duration) == (0, 3 * SECOND)


def test_waits_inside_a_phase_stay_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = record(tmp_path)
    clock = Clock(monkeypatch, time.monotonic_ns())

    def loader() -> Iterator[int]:
        for batch in range(2):
            clock.now += 3 * SECOND
            yield batch

    with recorder.phase("evaluation"):
        for _ in recorder.batches(loader()):
            clock.now += SECOND
    with recorder.step(1):
        clock.now += SECOND
    ((_, step),) = steps(read(tmp_path).envelopes)
    assert step.data_wait == 0
    ended = of(tmp_path, PhaseEnded)
    assert [(event.phase, event.duration) for event in ended] == [
        ("data_wait", 6 * SECOND),
        ("evaluation", 8 * SECOND),
    ]


# The spool


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
