"""Exceptions of a training: which fault each is, and that none costs more than itself."""

import contextlib
import logging
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from headway.events import AttemptEnded, Fault, PhaseBegan, PhaseEnded, StopAnnounced
from recording import Clock, events, misuses, of, read, record, step_numbers

SECOND = 1_000_000_000


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
    assert misuses(tmp_path) == ["internal_error"]


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
    assert misuses(tmp_path) == []


def test_an_exception_whose_words_are_itself_does_not_reach_the_training(tmp_path: Path) -> None:
    class LoopError(Exception):
        def __str__(self) -> str:
            raise LoopError

    recorder = record(tmp_path)
    recorder.exception(LoopError())
    assert recorder.suppressed_failures == 1
    assert misuses(tmp_path) == ["internal_error"]


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
    assert misuses(tmp_path) == ["step", "loss"]


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
