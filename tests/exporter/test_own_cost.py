"""Recorder and agent tell now and then what they take themselves."""

from pathlib import Path

import pytest

from headway.events import AgentCost, Event, RecorderCost
from headway.exporter.node.own_cost import OwnCostWatcher
from headway.exporter.recording import own_cost
from recording import of, record, step_numbers

SECOND = 10**9


def train(folder: Path) -> None:
    recorder = record(folder)
    for number in (1, 2, 3):
        with recorder.step(number):
            pass
    recorder.close()


def test_a_step_after_an_interval_is_measured_and_recorded_as_every_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_cost, "INTERVAL", 0)

    train(tmp_path)

    costs = of(tmp_path, RecorderCost)
    assert costs
    assert all(cost.step > 0 for cost in costs)
    assert step_numbers(tmp_path) == [1, 2, 3]


def test_an_observer_that_comes_in_a_measured_step_is_told_of_those_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_cost, "INTERVAL", 0)
    recorder, told = record(tmp_path), Told()

    with recorder.step(1) as step:
        assert type(step) is own_cost.MeasuredStepTimer
        recorder.observe(told)
    with recorder.step(2):
        pass
    recorder.close()

    assert told.phases == ["step"]


class Told:
    """An observer that remembers what began."""

    def __init__(self) -> None:
        self.phases: list[str] = []

    def began(self, phase: str) -> None:
        self.phases.append(phase)

    def ended(self, phase: str, completed: bool) -> None:
        pass


def test_within_the_interval_nothing_is_measured(tmp_path: Path) -> None:
    train(tmp_path)

    assert not of(tmp_path, RecorderCost)


def test_one_rank_of_a_node_tells_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_cost, "INTERVAL", 0)
    for name, value in (("RANK", "1"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)

    train(tmp_path)

    assert not of(tmp_path, RecorderCost)
    assert step_numbers(tmp_path) == [1, 2, 3]


def test_a_measured_step_that_breaks_is_told_as_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_cost, "INTERVAL", 0)
    recorder = record(tmp_path)

    with pytest.raises(ValueError, match="broken"), recorder.step(1):
        raise ValueError("broken")
    with recorder.step(1):
        pass
    recorder.close()

    assert step_numbers(tmp_path) == [1]


class Kept:
    """Keeps what a watcher records."""

    def __init__(self) -> None:
        self.events: list[tuple[int | None, Event]] = []

    def node_event(self, event: Event, *, monotonic: int | None = None) -> None:
        self.events.append((monotonic, event))


def test_an_agent_tells_once_a_minute_its_share_of_a_core_and_its_memory(tmp_path: Path) -> None:
    (tmp_path / "statm").write_text("9999 2 1 1 0 1 0\n")
    kept, times, spent = Kept(), iter((0, 30, 60, 61, 125)), iter((5.0, 5.6, 12.1))
    watcher = OwnCostWatcher(
        kept,
        monotonic=lambda: next(times) * SECOND,
        spent=lambda: next(spent),
        statm=tmp_path / "statm",
    )

    for _ in range(4):
        watcher.poll()

    (first, one), (second, other) = kept.events
    assert (first, second) == (60 * SECOND, 125 * SECOND)
    assert isinstance(one, AgentCost)
    assert isinstance(other, AgentCost)
    assert one.cpu == pytest.approx(0.01)
    assert other.cpu == pytest.approx(0.1)
    assert one.memory % 2 == 0
    assert one.memory > 0


def test_the_agent_measures_itself_as_it_is() -> None:
    kept, times = Kept(), iter((0, 60 * SECOND))
    watcher = OwnCostWatcher(kept, monotonic=lambda: next(times))

    watcher.poll()

    ((_, told),) = kept.events
    assert isinstance(told, AgentCost)
    assert told.memory > 1_000_000
    assert 0 <= told.cpu < 100
