"""Calls that make no sense: told once each, and never costing the training more than themselves."""

import math
from fractions import Fraction
from pathlib import Path

import pytest

from headway.events import (
    CheckpointScheduled,
    Misuse,
    Note,
    PhaseBegan,
    PhaseEnded,
    RunConfigured,
    RunEnded,
    Steps,
)
from headway.exporter.spooling.reader import spools
from recording import misuses, of, read, readers, record, step_numbers, steps


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
    assert misuses(tmp_path) == ["nested_phase"]


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
    assert misuses(tmp_path) == ["nested_step"]


@pytest.mark.parametrize("number", [-1, 2**40, "3", 1.5, None])
def test_a_step_without_a_proper_number_is_not_recorded(tmp_path: Path, number: object) -> None:
    recorder = record(tmp_path)
    with recorder.step(number) as step:  # type: ignore[arg-type]
        step.loss = 1.0
    with recorder.step(1):
        pass
    assert step_numbers(tmp_path) == [1]
    assert misuses(tmp_path) == ["step"]


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
    kinds = misuses(tmp_path)
    assert kinds == ["loss_type", "samples", "step", "resumed", "record"]


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_is_reported_once(tmp_path: Path, loss: float) -> None:
    recorder = record(tmp_path)
    for number in (1, 2):
        with recorder.step(number) as step:
            step.loss = loss
    assert step_numbers(tmp_path) == [1, 2]
    assert misuses(tmp_path) == ["loss"]


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
    assert misuses(tmp_path) == ["event", "record"]
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


@pytest.mark.parametrize("loss", [10**400, Fraction(10**400, 3), -(10**400)])
def test_a_loss_beyond_all_floats_costs_only_the_loss(tmp_path: Path, loss: float) -> None:
    recorder = record(tmp_path)
    with recorder.step(1) as step:
        step.loss = loss
    assert step_numbers(tmp_path) == [1]
    assert misuses(tmp_path) == ["loss"]


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
    assert misuses(tmp_path) == ["internal_error"]


@pytest.mark.parametrize("samples", [2**63, -5])
def test_a_count_of_samples_that_cannot_be_costs_only_the_count(
    tmp_path: Path, samples: int
) -> None:
    recorder = record(tmp_path)
    with recorder.step(1) as step:
        step.samples = samples
    ((_, found),) = steps(read(tmp_path).envelopes)
    assert found.samples == -1
    assert misuses(tmp_path) == ["samples"]


def test_step_numbers_of_other_libraries_become_pythons_own(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    recorder = record(tmp_path)
    for number in (254, 255):
        with recorder.step(numpy.uint8(number)):
            pass
    with recorder.step(256):
        pass
    assert step_numbers(tmp_path) == [254, 255, 256]
    assert misuses(tmp_path) == []


def test_resuming_beyond_every_step_is_refused(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    recorder.resumed(completed=2**63)
    with recorder.step(2**63 + 1):
        pass
    assert misuses(tmp_path) == ["resumed", "step"]


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
    assert misuses(tmp_path) == ["field", "event"]
