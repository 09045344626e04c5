"""Who observes is told of phases and steps, and costs nothing where nobody does."""

import time
from pathlib import Path

import pytest

from headway.exporter import Recorder
from headway.exporter.recording import observers as observers_module
from headway.exporter.recording.recorder import inert
from headway.exporter.recording.step_timer import StepTimer
from recording import misuses, read, record, step_numbers, steps


class Listener:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def began(self, phase: str) -> None:
        self.heard.append(("began", phase))

    def ended(self, phase: str, completed: bool) -> None:
        self.heard.append(("completed" if completed else "broke", phase))


def train(recorder: Recorder) -> None:
    """Take two steps and break in a phase within the third."""
    recorder.resumed(completed=0)
    for number in (1, 2):
        with recorder.step(number):
            pass
    with pytest.raises(ValueError, match="broken"), recorder.step(3), recorder.phase("evaluation"):
        raise ValueError("broken")


HEARD = [
    ("began", "step"),
    ("completed", "step"),
    ("began", "step"),
    ("completed", "step"),
    ("began", "step"),
    ("began", "evaluation"),
    ("broke", "evaluation"),
    ("broke", "step"),
]


def test_an_observer_hears_every_phase_and_step(tmp_path: Path) -> None:
    recorder, listener = record(tmp_path), Listener()
    recorder.observe(listener)

    train(recorder)

    assert listener.heard == HEARD
    assert step_numbers(tmp_path) == [1, 2]


def test_an_observer_hears_them_where_nothing_is_recorded() -> None:
    recorder, listener = inert(), Listener()
    recorder.observe(listener)

    train(recorder)

    assert listener.heard == HEARD  # a rank monitor must not kill who merely does not record


def test_what_an_observer_raises_is_counted_and_not_raised(tmp_path: Path) -> None:
    class Broken(Listener):
        def began(self, phase: str) -> None:
            raise OSError("gone")

    recorder, listener = record(tmp_path), Listener()
    recorder.observe(Broken())
    recorder.observe(listener)

    train(recorder)

    assert listener.heard == HEARD
    assert recorder.suppressed_failures == 4
    assert misuses(tmp_path) == ["internal_error"]


def test_without_an_observer_a_step_runs_the_code_it_always_ran(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    assert type(recorder.step(1)) is StepTimer

    recorder.observe(Listener())

    assert type(recorder.step(1)) is observers_module.ObservedStepTimer


def test_what_an_observer_does_is_no_part_of_the_step(tmp_path: Path) -> None:
    class Slow(Listener):
        def began(self, phase: str) -> None:
            time.sleep(0.2)

        def ended(self, phase: str, completed: bool) -> None:
            time.sleep(0.2)

    recorder = record(tmp_path)
    recorder.observe(Slow())
    with recorder.step(1):
        pass

    ((_, step),) = steps(read(tmp_path).envelopes)
    assert step.duration < 10**8


def test_the_open_phases_are_known_the_innermost_last(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    assert recorder.open_phases == ()
    with recorder.phase("startup"), recorder.phase("model"):
        assert recorder.open_phases == ("startup", "model")
    assert recorder.open_phases == ()
