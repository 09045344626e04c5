"""One certain fault, a stop and both ways of saving, in real processes."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headway.events import (
    CheckpointFailed,
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointLoadFailed,
    CheckpointScheduled,
    CheckpointStaged,
    Event,
    Fault,
    Note,
    PhaseEnded,
    Resumed,
    RunEnded,
    StopAnnounced,
)
from training_run import TORCHRUN, Training, environment, read, train

pytestmark = pytest.mark.slow

SIZE = ("--steps", "25", "--checkpoint-every", "10", "--evaluate-every", "8")


def names(events: list[Event]) -> list[str]:
    return [str(getattr(event, "checkpoint", None)) for event in events]


@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A run whose second checkpoint is damaged, saved while training waits."""
    folder = tmp_path_factory.mktemp("torn")
    fault = ("--fault", "checkpoint_torn", "--save", "sync")
    return train(folder / "run", folder / "spool", *fault, *SIZE)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A run whose second checkpoint cannot be written, in the background."""
    folder = tmp_path_factory.mktemp("failed")
    return train(folder / "run", folder / "spool", "--fault", "checkpoint_fail", *SIZE)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_torn_checkpoint_fails_to_load_and_the_one_before_is_taken(
    torn: Training, rank: int
) -> None:
    assert names(torn.of(rank, CheckpointLoadFailed)) == ["step-000020"]
    assert names(torn.of(rank, CheckpointLoaded)) == ["step-000010"]
    first, second = torn.of(rank, Resumed)
    assert first == Resumed(completed=0)
    assert second == Resumed(completed=10, checkpoint="step-000010", requested="step-000020")
    assert torn.of(rank, RunEnded) == [RunEnded(reason="completed")] * (rank == 0)


def test_the_reason_of_a_failed_load_is_a_sentence(torn: Training) -> None:
    (event,) = torn.of(0, CheckpointLoadFailed)
    assert isinstance(event, CheckpointLoadFailed)
    assert str(event.reason).startswith("rank ")
    assert "Traceback" not in str(event.reason)


def test_a_save_while_training_waits_copies_nothing_and_is_durable_at_once(
    torn: Training,
) -> None:
    assert torn.of(0, CheckpointStaged) == []
    told = torn.of(0, CheckpointScheduled, CheckpointFinalized)
    assert [type(event) for event in told] == [CheckpointScheduled, CheckpointFinalized] * 4
    assert names(told[::2]) == names(told[1::2])
    waited = sum(
        event.duration
        for event in torn.of(0, PhaseEnded)
        if isinstance(event, PhaseEnded) and event.phase == "checkpoint_save"
    )
    blocking = sum(event.blocking or 0 for event in told if isinstance(event, CheckpointScheduled))
    assert blocking > 0
    assert waited > 0.9 * blocking


@pytest.mark.parametrize("rank", [0, 1])
def test_a_save_that_fails_in_the_background_is_told_by_every_rank_and_training_goes_on(
    failed: Training, rank: int
) -> None:
    (event,) = failed.of(rank, CheckpointFailed)
    assert isinstance(event, CheckpointFailed)
    assert event.checkpoint == "step-000020"
    assert "Is a directory" in str(event.reason)
    assert event.background is not None
    assert failed.of(rank, Fault) == []
    assert names(failed.of(rank, CheckpointScheduled)) == [
        "step-000010",
        "step-000020",
        "step-000025",
    ]
    assert [number for number, _ in failed.passes(rank)] == list(range(1, 26))


def test_a_background_save_tells_its_copy_its_wait_its_write_and_its_bytes(
    failed: Training,
) -> None:
    staged, scheduled, finalized = failed.of(
        0, CheckpointStaged, CheckpointScheduled, CheckpointFinalized
    )[:3]
    assert isinstance(staged, CheckpointStaged)
    assert isinstance(scheduled, CheckpointScheduled)
    assert isinstance(finalized, CheckpointFinalized)
    assert staged.duration is not None
    assert scheduled.blocking is not None
    assert 0 < staged.duration <= scheduled.blocking
    assert staged.bytes_staged == scheduled.bytes_staged
    assert scheduled.queue_depth == 1
    assert finalized.background is not None
    assert finalized.bytes_written is not None
    assert finalized.bytes_total is not None
    # Both ranks hold about half, and a file holds some more than the tensors.
    assert scheduled.bytes_staged is not None
    assert 2 * scheduled.bytes_staged < finalized.bytes_total < 3 * scheduled.bytes_staged
    assert scheduled.bytes_staged < finalized.bytes_written < finalized.bytes_total


@pytest.mark.parametrize("rank", [0, 1])
def test_evaluations_are_phases_of_their_own(failed: Training, rank: int) -> None:
    phases = [event.phase for event in failed.of(rank, PhaseEnded) if isinstance(event, PhaseEnded)]
    assert phases.count("evaluation") == 3


def test_a_fault_is_announced_by_the_rank_that_it_strikes(failed: Training) -> None:
    (note,) = failed.of(1, Note)
    assert note == Note(
        text="injecting checkpoint_fail planned at save after step 15 into rank 1",
        author="fault schedule",
    )
    assert failed.of(0, Note) == []


def test_a_preempted_job_saves_after_one_step_on_all_ranks_and_goes_on_there(
    tmp_path: Path,
) -> None:
    program = ["-m", "headway.exporter.training.loop", "--directory", str(tmp_path / "run")]
    plan = ["--fault", "preemption", "--recovery", "none", *SIZE]
    with subprocess.Popen(
        [sys.executable, *TORCHRUN, *program, *plan],
        env=environment(tmp_path / "spool"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as job:
        mark = tmp_path / "run" / "faults" / "step-000015-rank-1-preemption"
        deadline = time.monotonic() + 120
        while not mark.exists():
            assert job.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        job.send_signal(signal.SIGTERM)
        _, errors = job.communicate(timeout=60)
    first = read(tmp_path / "spool")
    for rank in (0, 1):
        assert first.of(rank, StopAnnounced) == [
            StopAnnounced(reason="sigterm", grace=20 * 10**9)
        ], errors
        assert first.of(rank, Fault) == []
        assert first.passes(rank)[-1][0] == 16
    assert names(first.of(0, CheckpointFinalized))[-1] == "step-000016"
    second = train(tmp_path / "run", tmp_path / "spool again", "--recovery", "none", *SIZE)
    for rank in (0, 1):
        name = "step-000016"
        assert second.of(rank, Resumed) == [Resumed(completed=16, checkpoint=name, requested=name)]
        assert second.passes(rank)[0][0] == 17
