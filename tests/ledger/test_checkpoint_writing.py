"""How checkpoints were written, from the events of their saves."""

from typing import Any

from headway import events as e
from headway.checkpoint_writing import checkpoint_writing
from headway.ledger import ledger
from timeline import SECOND, Timeline, at, seconds, timeline

MB = 10**6


def writing(built: Timeline, until: float) -> dict[str, Any]:
    return checkpoint_writing(ledger(built.envelopes, at(until)))


def told(text: str, until: float) -> dict[str, Any]:
    built = Timeline()
    built.envelopes = timeline(text)
    return writing(built, until)


def saving(*, ranks: int = 2) -> Timeline:
    """Return a run of some ranks that is about to save after 100 steps of one second."""
    built = Timeline()
    built.attempt = "a"
    for rank in range(ranks):
        built.emit(0, e.AttemptStarted(layer="launcher", world_size=ranks), rank)
        built.emit(100 * SECOND, e.StepsSummary(first_step=1, num_steps=100, duration=100), rank)
    return built


def save(
    built: Timeline,
    begin: float,
    *,
    step: int = 100,
    background: float = 8,
    queue_depth: int = 1,
    ranks: int = 2,
) -> None:
    """Copy for 1 s on rank 0 and one more on each further rank, wait another, then write."""
    name = f"step-{step}"
    for rank in range(ranks):
        staged, waited = seconds(1 + rank), seconds(2 + rank)
        built.emit(
            seconds(begin) + staged,
            e.CheckpointStaged(checkpoint=name, step=step, duration=staged, bytes_staged=50 * MB),
            rank,
        )
        built.emit(
            seconds(begin) + waited,
            e.CheckpointScheduled(
                checkpoint=name,
                step=step,
                blocking=waited,
                bytes_staged=50 * MB,
                queue_depth=queue_depth,
            ),
            rank,
        )
    built.emit(
        seconds(begin + 2 + background),
        e.CheckpointFinalized(
            checkpoint=name,
            step=step,
            background=seconds(background),
            bytes_written=55 * MB,
            bytes_total=110 * MB,
        ),
    )


def test_the_slowest_rank_counts_for_times_and_all_ranks_for_bytes() -> None:
    built = saving()
    save(built, 100)
    found = writing(built, 120)
    assert found["saves"]["claimed"] == 1
    assert found["blocking_ns"]["max"] == 3 * SECOND
    assert found["staging_ns"]["max"] == 2 * SECOND
    assert found["background_ns"]["max"] == 8 * SECOND
    assert found["bytes_staged"]["max"] == 100 * MB
    assert found["bytes_written"]["max"] == 110 * MB
    assert found["bytes_per_second"]["max"] == 10 * MB  # in the 3 + 8 s that it took
    assert found["highest_queue_depth"] == 1


def test_without_the_size_of_the_whole_the_ranks_sizes_are_added() -> None:
    built = saving()
    for rank in (0, 1):
        built.emit(101 * SECOND, e.CheckpointScheduled(checkpoint="c", step=100), rank)
    for rank in (0, 1):
        done = e.CheckpointFinalized(checkpoint="c", step=100, bytes_written=(rank + 1) * MB)
        built.emit(102 * SECOND, done, rank)
    found = writing(built, 110)
    assert found["bytes_written"]["max"] == 3 * MB
    assert found["bytes_per_second"]["count"] == 0  # nobody told the time
    assert found["highest_queue_depth"] is None


def test_overlap_is_the_write_against_the_time_to_the_next_save_of_the_attempt() -> None:
    built = saving()
    save(built, 100, step=100, background=8)
    save(built, 120, step=120, background=19, queue_depth=2)
    save(built, 140, step=140, background=1)
    found = writing(built, 200)
    assert found["interval_ns"]["count"] == 2
    assert found["write_to_interval"] == {"mean": 27 / 40, "max": 19 / 20}
    assert found["highest_queue_depth"] == 2


def test_saves_of_two_attempts_make_no_interval() -> None:
    found = told(
        """
        0       attempt A launcher
        0-100   steps 1-100
        100     scheduled c100
        101     finalized c100
        110     exit signal=9
        120     attempt B launcher
        121     resumed 100 from=c100
        121-131 steps 101-110
        131     scheduled c110
        132     finalized c110
        """,
        140,
    )
    assert found["interval_ns"]["count"] == 0
    assert found["write_to_interval"] == {"mean": None, "max": None}
    assert found["saves"]["verified"] == found["saves"]["claimed"] == 1


def test_a_save_that_was_never_completed_is_open_while_its_attempt_lives_and_then_incomplete() -> (
    None
):
    text = """
        0       attempt A launcher
        0-100   steps 1-100
        100     scheduled c100
        """
    assert told(text, 101)["saves"]["open"] == 1
    after = told(f"{text}\n110 exit signal=9", 120)["saves"]
    assert (after["open"], after["incomplete"]) == (0, 1)
    assert after["claimed"] == after["verified"] == 0


def test_a_failed_save_says_how_long_it_took_and_has_no_rate() -> None:
    built = saving(ranks=1)
    built.emit(101 * SECOND, e.CheckpointScheduled(checkpoint="c", step=100, blocking=SECOND))
    failed = e.CheckpointFailed(checkpoint="c", step=100, reason="full", background=5 * SECOND)
    built.emit(106 * SECOND, failed)
    found = writing(built, 110)
    assert found["saves"]["failed"] == 1
    assert found["background_ns"]["max"] == 5 * SECOND
    assert found["bytes_per_second"]["count"] == 0


def remembering(*readings: tuple[float, int, float | None, str]) -> dict[str, Any]:
    """Return the figures of a save from second 1000 to 1010 with what nodes told of memory."""
    built = saving(ranks=1)
    for time, available, pressure, node in readings:
        event = e.NodeMemory(available=available * MB, total=1000 * MB, pressure=pressure)
        built.of_node(seconds(time), event, node)
    save(built, 1000, ranks=1)
    return writing(built, 1020)


def test_memory_counts_from_the_copy_to_the_end_of_the_write() -> None:
    found = remembering(
        (900, 1, 0.9, "node-a"),
        (999, 600, 0.1, "node-a"),
        (1000.5, 700, None, "node-a"),
        (1005, 300, 0.25, "node-a"),
        (1009, 400, 0.5, "node-a"),
        (1011, 2, 0.9, "node-a"),
    )
    assert found["lowest_memory"] == 300 * MB
    assert found["highest_memory_pressure"] == 0.5


def test_what_a_node_said_last_holds_until_it_says_something_else() -> None:
    found = remembering((900, 1, 0.9, "node-a"), (999, 600, 0.1, "node-a"), (990, 500, 0.2, "b"))
    assert found["lowest_memory"] == 500 * MB
    assert found["highest_memory_pressure"] == 0.2


def test_a_node_that_has_said_nothing_for_long_is_not_known() -> None:
    assert remembering((300, 1, 0.9, "node-a"))["lowest_memory"] is None


def test_a_torn_checkpoint_is_revoked_and_the_fall_back_to_an_older_one_is_listed() -> None:
    found = told(
        """
        0       attempt A launcher
        0-100   steps 1-100
        50      scheduled c50
        51      finalized c50
        100     scheduled c100
        101     finalized c100
        110     exit signal=9
        120     attempt B launcher
        120-122 phase checkpoint_load
        122     load_failed c100
        124     resumed 50 from=c50 requested=c100
        124-134 steps 51-60
        """,
        140,
    )
    assert found["saves"]["revoked"] == 1
    assert found["saves"]["verified"] == 1
    assert found["fallbacks"] == [
        {"attempt": "B", "time": at(124), "requested": "c100", "checkpoint": "c50"}
    ]
    assert found["restarts_from_zero"] == []


def test_a_silent_restart_from_zero_is_listed_with_what_was_there() -> None:
    found = told(
        """
        0       attempt A launcher
        0-100   steps 1-100
        50      scheduled c50
        51      finalized c50
        110     exit signal=9
        120     attempt B launcher
        124     resumed 0
        124-134 steps 1-10
        """,
        140,
    )
    assert found["restarts_from_zero"] == [
        {"attempt": "B", "time": at(124), "requested": None, "checkpoint": None, "newest": "c50"}
    ]


def test_the_first_start_is_no_restart_from_zero() -> None:
    found = told(
        """
        0       attempt A launcher
        1       resumed 0
        1-101   steps 1-100
        50      scheduled c50
        51      finalized c50
        """,
        110,
    )
    assert found["restarts_from_zero"] == []


def test_a_run_without_a_save_has_no_figures() -> None:
    found = told("0 attempt A launcher\n0-10 steps 1-10", 10)
    assert set(found["saves"].values()) == {0}
    assert found["blocking_ns"] == {"count": 0, "p50": None, "p95": None, "max": None}
    assert found["highest_queue_depth"] is found["lowest_memory"] is None
