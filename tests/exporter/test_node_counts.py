"""The counters of the node's runs: each thing once, from 0 on, and never without bound."""

from collections.abc import Sequence

import pytest

from headway import step_blocks
from headway.events import (
    AttemptStarted,
    CheckpointFailed,
    CheckpointFinalized,
    Dropped,
    Envelope,
    Event,
    Fault,
    GpuFault,
    GpuSample,
    GpuXid,
    NodeMemory,
    RankExited,
    Resumed,
    Steps,
)
from headway.exporter.node.counts import MOST_RUNS, NodeCounts
from headway.step_blocks import Step

SECOND = 10**9


def envelope(
    event: Event,
    *,
    rank: int | None = 0,
    attempt: str | None = "a",
    run: str | None = "r",
    at: int = 0,
) -> Envelope:
    return Envelope(
        producer=f"p{rank}",
        anchor=0,
        first_sequence=0,
        last_sequence=0,
        run=run,
        attempt=attempt,
        rank=rank,
        wall=at,
        monotonic=at,
        event=event,
    )


def steps(first: int, durations: Sequence[int], wait: int = 0) -> Steps:
    packed = step_blocks.pack(Step(0, duration, wait) for duration in durations)
    return Steps(first_step=first, version=step_blocks.VERSION, packed=packed)


def counted(*envelopes: Envelope, now: int = 0) -> dict[tuple[str, ...], float | None]:
    counts = NodeCounts()
    counts.add(envelopes)
    return {
        (name.removeprefix("headway_node_"), *labels): value
        for name, labels, value in counts.samples(now)
    }


# A28: prometheus/prometheus#1673
def test_every_counter_of_a_run_exists_at_0_from_its_first_record_on() -> None:
    found = counted(envelope(AttemptStarted(layer="scheduler")))
    assert found["steps_total", "r"] == 0
    assert found["restarts_total", "r", "in_process"] == 0
    assert found["faults_total", "r", "hang"] == 0
    assert found["rank_exits_total", "r", "kernel"] == 0
    assert found["rollbacks_total", "r"] == 0
    assert found["checkpoints_total", "r", "failed"] == 0
    assert found["dropped_records_total", "r"] == 0
    assert found["gpu_faults_total", "xid", "reset"] == 0


def test_the_steps_of_an_attempt_are_those_of_the_rank_that_did_most() -> None:
    found = counted(
        envelope(steps(1, [SECOND] * 5, wait=SECOND), rank=0),
        envelope(steps(1, [SECOND] * 7), rank=1),
        envelope(steps(6, [SECOND] * 1), rank=0),
        envelope(steps(3, [SECOND] * 2), rank=1, attempt="b"),
    )
    assert found["steps_total", "r"] == 9
    assert found["step_seconds_total", "r"] == 15
    assert found["data_wait_seconds_total", "r"] == 5


def test_an_attempt_counts_once_however_many_ranks_begin_it_and_the_first_is_no_restart() -> None:
    begins = [("a", "launcher"), ("b", "in_process"), ("c", "launcher")]
    found = counted(
        *(
            envelope(AttemptStarted(layer=layer), rank=rank, attempt=attempt)
            for attempt, layer in begins
            for rank in range(4)
        )
    )
    assert found["attempts_total", "r", "launcher"] == 2
    assert found["restarts_total", "r", "launcher"] == 1
    assert found["restarts_total", "r", "in_process"] == 1
    assert found["restarts_total", "r", "scheduler"] == 0


def test_an_agent_that_came_in_the_middle_of_an_attempt_counts_the_next_one_as_a_restart() -> None:
    found = counted(
        envelope(steps(500, [1] * 10)),
        envelope(AttemptStarted(layer="launcher"), attempt="b"),
    )
    assert found["restarts_total", "r", "launcher"] == 1


def test_a_resume_below_the_highest_step_is_one_rollback_however_many_ranks_resume() -> None:
    found = counted(
        envelope(Resumed(completed=0)),
        envelope(steps(1, [1] * 10)),
        envelope(Resumed(completed=10), attempt="b"),
        envelope(steps(11, [1] * 5), attempt="b"),
        envelope(Resumed(completed=10), attempt="c"),
        envelope(steps(11, [1] * 6), attempt="b", rank=1),  # read late: no step of attempt c
        envelope(Resumed(completed=10), attempt="c", rank=1),
        envelope(Resumed(completed=10), attempt="d"),
    )
    assert found["rollbacks_total", "r"] == 1


def test_faults_exits_saves_and_losses_are_counted_by_kind() -> None:
    found = counted(
        envelope(Fault(kind="hang")),
        envelope(RankExited(by="kernel", signal=9)),
        envelope(CheckpointFinalized(checkpoint="c1", step=1), rank=0),
        envelope(CheckpointFinalized(checkpoint="c1", step=1), rank=1),
        envelope(CheckpointFailed(checkpoint="c2", step=2)),
        envelope(Dropped(count=12, reason="no room")),
    )
    assert found["faults_total", "r", "hang"] == 1
    assert found["rank_exits_total", "r", "kernel"] == 1
    assert found["checkpoints_total", "r", "finalized"] == 1
    assert found["checkpoints_total", "r", "failed"] == 1
    assert found["dropped_records_total", "r"] == 12


def test_the_nodes_own_events_count_by_what_they_ask_for() -> None:
    xid = GpuXid(code=79, device="GPU-1", classification="reset", repeats=3)
    found = counted(
        envelope(xid, run=None, rank=None),
        envelope(GpuFault(kind="lost"), run=None, rank=None),
        envelope(NodeMemory(available=5, oom_kills=2), run=None, rank=None),
        envelope(GpuSample(device="GPU-1", power=400.0), run=None, rank=None),
        now=SECOND,
    )
    assert found["gpu_faults_total", "xid", "reset"] == 3
    assert found["gpu_faults_total", "lost", "unclassified"] == 1
    assert found["memory_available_bytes",] == 5
    assert found["memory_total_bytes",] is None
    assert found["oom_kills_total",] == 2
    assert found["gpu_power_watts", "GPU-1"] == 400


def test_the_state_of_a_gpu_that_nobody_asks_any_more_is_not_published() -> None:
    sample = envelope(GpuSample(device="GPU-1", power=400.0), run=None, rank=None)
    assert ("gpu_power_watts", "GPU-1") not in counted(sample, now=121 * SECOND)


def test_a_pace_is_the_mean_of_the_last_hundred_steps_and_goes_with_its_spool() -> None:
    counts = NodeCounts()
    counts.add([envelope(steps(1, [9 * SECOND] * 50)), envelope(steps(51, [SECOND] * 99, SECOND))])
    duration, wait = counts.pace("p0") or (0, 0)
    assert duration == pytest.approx(1.08)
    assert wait == pytest.approx(0.99)
    counts.forget("p0")
    assert counts.pace("p0") is None


def test_the_runs_and_attempts_that_are_kept_are_bounded() -> None:
    counts = NodeCounts()
    for number in range(3 * MOST_RUNS):
        run = f"r{number}"
        counts.add([envelope(AttemptStarted(layer="scheduler"), run=run)])
    few = len(counts.samples(0))
    for number in range(500):
        started = envelope(AttemptStarted(layer="launcher"), run="r59", attempt=str(number))
        counts.add([started])
    assert len(counts.samples(0)) == few
    names = {labels[0] for name, labels, _ in counts.samples(0) if name.endswith("_steps_total")}
    assert names == {f"r{number}" for number in range(2 * MOST_RUNS, 3 * MOST_RUNS)}
