"""The resilient training in real processes: it breaks, recovers, and learns the same."""

from pathlib import Path

import pytest

from headway.events import (
    Allocation,
    AttemptEnded,
    AttemptStarted,
    CheckpointFailed,
    CheckpointFinalized,
    CheckpointLoadFailed,
    CheckpointScheduled,
    Dropped,
    Fault,
    Misuse,
    Note,
    RestartPhase,
    Resumed,
    RunConfigured,
    RunEnded,
    RunStarted,
)
from headway.exporter.training.faults import schedule
from training_run import Training, train

pytestmark = pytest.mark.slow

STEPS, EVERY = 60, 10
SIZE = ("--steps", str(STEPS), "--checkpoint-every", str(EVERY))
FAULTS = schedule(seed=7, num_faults=2, after_step=12, max_steps=STEPS, world_size=2)


@pytest.fixture(scope="module")
def undisturbed_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("undisturbed") / "a run"


@pytest.fixture(scope="module")
def undisturbed(undisturbed_directory: Path) -> Training:
    return train(undisturbed_directory, undisturbed_directory / "spool", "--seed", "7", *SIZE)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Training:
    directory = tmp_path_factory.mktemp("broken")
    faults = ("--seed", "7", "--faults", "2", "--fault-after", "12")
    return train(directory, directory / "spool", *faults, *SIZE)


@pytest.mark.parametrize("rank", [0, 1])
def test_every_pass_of_a_step_has_the_loss_and_samples_of_a_run_without_faults(
    undisturbed: Training, broken: Training, rank: int
) -> None:
    expected = dict(undisturbed.passes(rank))
    assert list(expected) == list(range(1, STEPS + 1))
    executed = broken.passes(rank)
    assert {step for step, _ in executed} == set(expected)
    assert len(executed) > STEPS
    for number, step in executed:
        assert step.loss == pytest.approx(expected[number].loss, rel=1e-5), number
        assert step.samples == expected[number].samples == 8 * number


def test_the_model_learns(undisturbed: Training) -> None:
    steps = dict(undisturbed.passes(0))
    assert steps[STEPS].loss < 0.8 * steps[1].loss


def test_each_fault_strikes_once_after_its_step_and_says_where_it_was_raised(
    broken: Training,
) -> None:
    faults = broken.of(1, Fault)
    assert broken.of(0, Fault) == []  # its broken connections are a consequence
    assert len(faults) == len(FAULTS)
    for fault, planned in zip(faults, FAULTS, strict=True):
        assert isinstance(fault, Fault)
        assert fault.kind == "exception"
        assert f"planned for step {planned.step}" in str(fault.message)
        assert f"after step {planned.step}" in str(fault.message)
        assert "in _break" in str(fault.traceback)


def test_each_restart_resumes_from_the_newest_durable_checkpoint(broken: Training) -> None:
    durable = [0]
    resumed = []
    for item in broken.envelopes[0]:
        if isinstance(item.event, CheckpointFinalized):
            durable.append(item.event.step)
        if isinstance(item.event, Resumed):
            resumed.append(item.event)
            assert item.event.completed == max(durable)
    assert len(resumed) == len(FAULTS) + 1
    assert broken.of(1, Resumed) == resumed
    assert [event.checkpoint for event in resumed if event.completed] == [
        f"step-{event.completed:06d}" for event in resumed if event.completed
    ]


def test_restarts_in_the_process_are_attempts_with_their_iteration(broken: Training) -> None:
    for rank in (0, 1):
        attempts = [
            (event.layer, event.iteration, event.world_size)
            for event in broken.of(rank, AttemptStarted)
            if isinstance(event, AttemptStarted)
        ]
        assert attempts == [("launcher", None, 2), ("in_process", 1, 2), ("in_process", 2, 2)]
    names = [{item.attempt for item in broken.envelopes[rank]} - {None} for rank in (0, 1)]
    assert names[0] == names[1]
    assert len(names[0]) == 3


def test_each_restart_tells_its_phases_and_whom_it_blames(broken: Training) -> None:
    seen = [
        (event.phase, event.state)
        for event in broken.of(0, RestartPhase)
        if isinstance(event, RestartPhase)
    ]
    names = ("abort", "finalize", "health_check", "rendezvous")
    assert sorted(seen) == sorted(
        (phase, state) for phase in names for state in ("began", "ended") for _ in FAULTS
    )
    blamed = [
        event.detail
        for event in broken.of(0, RestartPhase)
        if isinstance(event, RestartPhase) and event.detail
    ]
    assert blamed == ["exception on rank 1"] * len(FAULTS)


def test_a_scheduled_save_becomes_durable_or_is_reported_as_failed(broken: Training) -> None:
    scheduled, closed = [], []
    for event in broken.of(0, CheckpointScheduled, CheckpointFinalized, CheckpointFailed):
        assert isinstance(event, CheckpointScheduled | CheckpointFinalized | CheckpointFailed)
        (scheduled if isinstance(event, CheckpointScheduled) else closed).append(event.step)
    assert scheduled == closed
    assert scheduled[-1] == STEPS


def test_the_run_is_described_once_and_ended_last(broken: Training) -> None:
    # By the rank that was the first to look for the run's id.
    started = broken.of(0, RunStarted) + broken.of(1, RunStarted)
    assert started == [RunStarted(run_name="demo")]
    assert len(broken.of(0, Allocation)) == 1
    run_ended, attempt_ended = (item.event for item in broken.envelopes[0][-2:])
    assert run_ended == RunEnded(reason="completed")
    assert isinstance(attempt_ended, AttemptEnded)
    assert broken.of(1, RunEnded, Allocation) == []
    configured = broken.of(0, RunConfigured)[0]
    assert isinstance(configured, RunConfigured)
    assert (configured.target_step, configured.checkpoint_interval) == (STEPS, EVERY)
    assert configured.timeouts is not None
    assert configured.timeouts["in_process.soft_timeout"] == 60 * 10**9


@pytest.mark.parametrize("rank", [0, 1])
def test_nothing_is_misused_or_dropped(broken: Training, rank: int) -> None:
    assert broken.of(rank, Misuse, Dropped) == []


def test_a_later_launch_passes_an_unreadable_checkpoint_over(
    undisturbed: Training, undisturbed_directory: Path
) -> None:
    newest = undisturbed_directory / "checkpoints" / f"step-{STEPS:06d}"
    for part in newest.glob("__1_*"):
        part.write_bytes(part.read_bytes()[:1000])
    options = ("--seed", "7", "--steps", str(STEPS + 5), "--checkpoint-every", str(EVERY))
    again = train(undisturbed_directory, undisturbed_directory / "spool again", *options)
    for rank in (0, 1):
        failed = again.of(rank, CheckpointLoadFailed)
        assert [getattr(event, "checkpoint", None) for event in failed] == [newest.name]
        assert again.of(rank, Resumed) == [
            Resumed(
                completed=STEPS - EVERY,
                checkpoint=f"step-{STEPS - EVERY:06d}",
                requested=newest.name,
            )
        ]
    expected = dict(undisturbed.passes(0))
    executed = again.passes(0)
    assert [number for number, _ in executed] == list(range(STEPS - EVERY + 1, STEPS + 6))
    for number, step in executed[:EVERY]:
        assert step.loss == pytest.approx(expected[number].loss, rel=1e-5), number
    assert again.of(0, RunStarted, Note) == []
