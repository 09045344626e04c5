"""Waits for data: whose they are, and that an agent sees them while they last."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.events import PhaseBegan, PhaseEnded
from recording import Clock, of, read, readers, record, steps

SECOND = 1_000_000_000


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


def test_a_loader_that_fails_leaves_its_wait_as_a_phase(tmp_path: Path) -> None:
    recorder = record(tmp_path)

    def loader() -> Iterator[int]:
        yield 0
        raise OSError("shard gone")

    with pytest.raises(OSError, match="shard gone"):
        list(recorder.batches(loader()))
    (ended,) = of(tmp_path, PhaseEnded)
    assert (ended.phase, ended.error) == ("data_wait", "OSError")


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
