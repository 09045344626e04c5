"""The recorder: what a training process calls.

It never raises into the training, waits for nobody and touches no GPU: whatever goes wrong in
here is counted, reported once and given up. It has no thread of its own; whoever reads the spool
tells from its header that the process is alive and what it is doing.
"""

import atexit
import math
import numbers
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec

from headway import settings as settings_module
from headway.events import (
    PHASES,
    AttemptEnded,
    AttemptStarted,
    Event,
    Misuse,
    PhaseBegan,
    PhaseEnded,
    Resumed,
    RunStarted,
    Steps,
    StepsSummary,
)
from headway.exporter import failures, identity
from headway.exporter.plain_values import LONGEST_TEXT, named, plain_int, qualified
from headway.exporter.spool_layout import (
    OpenPhase,
    Producer,
    Slot,
    agent_is_shipping,
    spool_folder,
)
from headway.exporter.spool_writer import SpoolWriter
from headway.exporter.step_timer import NO_NUMBER, StepTimer
from headway.settings import RecorderSettings
from headway.step_blocks import UNKNOWN_SAMPLES
from headway.wire import WireError, from_fields, specs

_now = time.monotonic_ns
_LARGEST_STEP = 2**32 - 1
_WAIT_START, _WAIT_END = int(Slot.WAIT_START), int(Slot.WAIT_END)

_Arguments = ParamSpec("_Arguments")


def _harmless(
    method: Callable[Concatenate["Recorder", _Arguments], None],
) -> Callable[Concatenate["Recorder", _Arguments], None]:
    """Protect the training: what a method raises is counted and reported instead."""

    @wraps(method)
    def protected(
        recorder: "Recorder", /, *arguments: _Arguments.args, **options: _Arguments.kwargs
    ) -> None:
        try:
            method(recorder, *arguments, **options)
        except Exception as failure:
            recorder.suppressed(failure)

    return protected


class Recorder:
    """Records what one rank does; `docs` and README show the ten lines that adopt it."""

    def __init__(
        self,
        run: str | None = None,
        *,
        rank: int | None = None,
        checkpoints: Path | None = None,
        settings: RecorderSettings | None = None,
    ) -> None:
        """Find out who this process is, create its spool and open its first attempt.

        Name, identity and spool folder come from the settings where they are not given;
        `checkpoints` is the folder, shared by all ranks, beside whose checkpoints the run's
        identity is kept.
        """
        self.suppressed_failures = 0
        self._reported: set[str] = set()
        self._writer: SpoolWriter | None = None
        self._timer = StepTimer(self)
        self._idle = StepTimer(self)
        self._phases: list[OpenPhase] = []
        self._run = ""
        self._rank: int | None = None
        self._key: tuple[str, str, int | None] | None = None
        self._launch: identity.Launch | None = None
        self._ranks: identity.Ranks | None = None
        self._attempt: str | None = None
        self._attempt_open = False
        self._resumed = False
        self._exit_delay = 0.0
        self._start(run, rank, checkpoints, settings)

    @_harmless
    def _start(
        self,
        run: str | None,
        rank: int | None,
        checkpoints: Path | None,
        settings: RecorderSettings | None,
    ) -> None:
        environment = os.environ
        settings = settings or settings_module.load(RecorderSettings)
        if not settings.enabled:
            return
        self._exit_delay = settings.exit_delay
        name = run or settings.run or _program()
        run_id, new = identity.run_id(settings.run_id, _path(checkpoints), environment)
        self._run = f"{name}-{run_id}"
        self._ranks = identity.ranks(environment)
        self._launch = identity.launch(environment)
        self._rank = self._ranks.rank if rank is None else rank
        folder = spool_folder(settings.spool)
        self._key = (str(folder), self._run, self._rank)
        for other in _live:
            if other._key == self._key and other._writer is not None:
                other.misuse(
                    "second_recorder",
                    "a second Recorder of this rank records nothing; use the first one, or "
                    "close it before",
                )
                return
        producer = Producer(
            producer=os.urandom(16).hex(),
            anchor=time.time_ns() - _now(),
            run=self._run,
            rank=self._rank,
            node=identity.node(environment),
            boot_id=identity.boot_id(),
            process_id=os.getpid(),
        )
        try:
            writer = SpoolWriter(folder, producer, settings.spool_limit)
        except OSError as error:
            self._report(
                "unwritable_spool",
                f"cannot write a spool in {str(folder)!r}: {error}; nothing is recorded; "
                "set HEADWAY_SPOOL to a folder on a local disk with room",
            )
            return
        self._writer = self._timer.writer = writer
        self._timer.slots = writer.slots
        _live.add(self)
        atexit.register(self._at_exit)
        started = identity.process_started()
        if new and self._rank == 0:
            self._emit(RunStarted(run_name=name), started)
        self.attempt(layer=self._launch.layer, started=started)
        if not self._ranks.local_rank and not agent_is_shipping(folder):
            self._report(
                "no_agent",
                f"recording to {str(folder)!r}, and no agent ships it: start `headway agent` on "
                f"this node, or later run `headway import spool {folder}`",
            )

    # Attempts

    @_harmless
    def attempt(
        self,
        *,
        layer: str,
        iteration: int | None = None,
        launcher_round: int | None = None,
        scheduler_job: str | None = None,
        world_size: int | None = None,
        started: int | None = None,
    ) -> None:
        """Open an attempt that `started` at a monotonic time, by default now.

        What is not given is taken from the environment. An attempt that is open already is
        not opened again, so the in-process wrapper's iteration 0 is its process's attempt.
        """
        if self._launch is None or self._ranks is None:
            return
        launch, ranks = self._launch, self._ranks
        job = scheduler_job or launch.scheduler_job
        # A requeued Slurm job keeps its id.
        job_or_group = launch.group if job is None else f"{job}.{launch.slurm_restarts or 0}"
        launcher_round = launch.launcher_round if launcher_round is None else launcher_round
        attempt = identity.attempt_id(self._run, job_or_group, launcher_round, iteration)
        if attempt == self._attempt and self._attempt_open:
            return
        if self._attempt_open:
            self._emit(AttemptEnded(learned_from="the next attempt"))
        self._attempt, self._attempt_open, self._resumed = attempt, True, False
        self._phases.clear()
        self._show_phases()
        timer = self._timer
        timer.start = timer.data_wait = 0
        timer.number = NO_NUMBER
        timer.attempt = int(attempt, 16)
        if timer.slots is not None:
            timer.slots[Slot.ATTEMPT] = (timer.attempt + 2**63) % 2**64 - 2**63
            timer.slots[Slot.STEP_END] = _now()
        self._emit(
            AttemptStarted(
                layer=layer,
                world_size=ranks.world_size if world_size is None else world_size,
                process_id=os.getpid(),
                local_rank=ranks.local_rank,
                scheduler_job=job,
                launcher_round=launcher_round,
                iteration=iteration,
                torchelastic_restarts=launch.torchelastic_restarts,
                slurm_restarts=launch.slurm_restarts,
            ),
            started,
        )

    @_harmless
    def end_attempt(self, error: BaseException | None = None) -> None:
        """Record that this rank left the attempt, and the exception that made it leave."""
        if error is not None:
            self.exception(error)
        if self._attempt_open:
            self._attempt_open = False
            self._emit(AttemptEnded(learned_from="the rank itself"))

    @_harmless
    def resumed(
        self, completed: int, checkpoint: str | None = None, requested: str | None = None
    ) -> None:
        """Record that training continues after `completed` optimizer steps."""
        number = plain_int(completed)
        if number is None:
            self.misuse("resumed", f"completed must be a whole number, got {named(completed)}")
            return
        self._timer.number = number
        self._emit(Resumed(completed=number, checkpoint=checkpoint, requested=requested))

    # Time

    def phase(self, name: str) -> "Phase":
        """Return a context manager that records a phase: one of the declared, or `custom:NAME`."""
        return Phase(self, name)

    def step(self, number: int) -> StepTimer:
        """Return a context manager that records a completed optimizer step, counted from 1."""
        timer = self._timer
        if type(number) is not int or number != timer.number + 1 or timer.start:
            timer = self._unusual_step(number)
        timer.number = number
        timer.loss = timer.samples = None
        return timer

    def batches(self, iterable: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches; the wait for each counts as data wait of the next step."""
        timer = self._timer
        began = _now()
        if timer.slots is not None:
            timer.slots[_WAIT_START] = began
        waiting = True
        try:
            for batch in iterable:
                waiting = False
                slots = timer.slots
                if slots is not None:
                    end = _now()
                    slots[_WAIT_END] = end
                    if not timer.start:  # a wait inside a step is part of the step
                        timer.data_wait += end - began
                yield batch
                began = _now()
                slots = timer.slots
                if slots is not None:
                    slots[_WAIT_START] = began
                waiting = True
        except BaseException as error:
            if waiting:
                self._wait_failed(began, error)
            raise
        finally:
            if waiting and timer.slots is not None:
                timer.slots[_WAIT_END] = _now()
        timer.data_wait += _now() - began

    # Facts

    @_harmless
    def record(self, event: Event) -> None:
        """Record any declared event as having happened now."""
        if not isinstance(event, Event) or isinstance(event, Steps | StepsSummary):
            self.misuse("record", f"cannot record {named(event)}; steps go through `step`")
            return
        self._emit(event)

    @_harmless
    def exception(self, error: BaseException) -> None:
        """Record an exception as a fault, where and when it left a step or phase; once each."""
        if self._writer is not None and not failures.is_recorded(error):
            seen = _now()  # reading the traceback takes longer than a step may
            fault, left = failures.fault(error)
            self._emit(fault, seen if left is None else left)

    @_harmless
    def close(self) -> None:
        """Record that nothing will follow; called at the interpreter's exit at the latest."""
        writer = self._writer
        if writer is None:
            return
        if self._attempt_open:
            self._attempt_open = False
            self._emit(AttemptEnded(learned_from="the recorder's end"))
        self._detach()
        _live.discard(self)
        atexit.unregister(self._at_exit)
        writer.close(self._exit_delay)

    # For the parts of the exporter

    def __reduce__(self) -> tuple[Callable[[], "Recorder"], tuple[()]]:
        """Travel to worker processes as a recorder that records nothing."""
        return inert, ()

    def __deepcopy__(self, memo: Mapping[int, Any]) -> "Recorder":
        """Stay itself when a wrapper copies the state that holds it."""
        return self

    def suppressed(self, failure: Exception) -> None:
        """Count what would have been raised into the training."""
        self.suppressed_failures += 1
        if "internal_error" not in self._reported:
            self._tell("internal_error", f"{qualified(type(failure))}: {failure}")

    def misuse(self, kind: str, detail: str) -> None:
        """Report a way of use that makes no sense, and record it, once per kind."""
        if kind not in self._reported and self._writer is not None:
            self._tell(kind, detail)

    @_harmless
    def step_cut_short(self, start: int, end: int, error: BaseException) -> None:
        """Record that an exception left a step."""
        timer = self._timer
        failures.note_left(error, end, "step", timer.number)
        if timer.data_wait:
            began = start - timer.data_wait
            self._emit(PhaseBegan(phase="data_wait"), began)
            self._emit(PhaseEnded(phase="data_wait", duration=timer.data_wait), start)
            timer.data_wait = 0
        timer.number -= 1
        self._emit(PhaseBegan(phase="step"), start)
        ended = PhaseEnded(phase="step", duration=end - start, error=qualified(type(error)))
        self._emit(ended, end)

    def plain_loss(self, loss: object, step: int) -> float:
        """Return a loss as a finite float, else NaN; a tensor is refused, not read."""
        if isinstance(loss, numbers.Real):
            number = float(loss)
            if math.isfinite(number):
                return number
            self.misuse("loss", f"loss of step {step} is {number}")
        else:
            self.misuse(
                "loss_type",
                f"loss of step {step} is {named(loss)}, not a float; give `loss.item()` where "
                "the training reads it anyway",
            )
        return math.nan

    def plain_samples(self, samples: object) -> int:
        """Return a count of samples as an int, unknown for anything else."""
        number = plain_int(samples)
        if number is None:
            self.misuse("samples", f"samples must be a whole number, got {named(samples)}")
            return UNKNOWN_SAMPLES
        return number

    @_harmless
    def enter_phase(self, phase: "Phase") -> None:
        """Record the entry of a phase."""
        name = phase.name
        if not isinstance(name, str):
            self.misuse("phase", f"a phase needs a name, got {named(name)}")
            return
        if name not in PHASES:
            from headway.metrics import CUSTOM  # keeps its declarations out of the import

            if not name.startswith(CUSTOM):
                known = ", ".join(PHASES)
                self.misuse("phase", f"unknown phase {name!r}; known: {known}, {CUSTOM}NAME")
                name = CUSTOM + name
        if any(name == opened.phase for opened in self._phases):
            self.misuse("nested_phase", f"phase {name!r} is open already; the outer one counts")
            return
        phase.opened = OpenPhase(name, _now())
        self._phases.append(phase.opened)
        self._emit(PhaseBegan(phase=name), phase.opened.began)
        self._show_phases()

    @_harmless
    def leave_phase(self, phase: "Phase", error: BaseException | None) -> None:
        """Record the end of a phase."""
        opened, end = phase.opened, _now()
        if opened is None:
            return
        phase.opened = None
        if opened in self._phases:
            self._phases.remove(opened)
        words = None
        if error is not None:
            words = qualified(type(error))
            failures.note_left(error, end, opened.phase, None)
        ended = PhaseEnded(phase=opened.phase, duration=end - opened.began, error=words)
        self._emit(ended, end)
        self._show_phases()

    def _unusual_step(self, number: Any) -> StepTimer:
        """Return the handle for a step that is the first, does not follow, or makes no sense."""
        timer = self._timer
        if self._writer is None:
            return self._idle
        plain = plain_int(number)
        if plain is None or plain > _LARGEST_STEP:
            self.misuse("step", f"a step needs a whole number, got {named(number)}")
            return self._idle
        if timer.start:
            self.misuse("nested_step", f"step {plain} began inside step {timer.number}")
            timer.start = 0
        expected = timer.number + 1
        if timer.number != NO_NUMBER and plain != expected:
            detail = f"step {plain} follows where step {expected} was expected"
            self.misuse("step_order", f"{detail}; call `resumed` after loading a checkpoint")
        if not plain:
            self.misuse("step_zero", "steps count from 1: step n makes n completed steps")
        return timer

    @_harmless
    def _wait_failed(self, began: int, error: BaseException) -> None:
        end = _now()
        failures.note_left(error, end, "data_wait", None)
        self._emit(PhaseBegan(phase="data_wait"), began)
        words = qualified(type(error))
        self._emit(PhaseEnded(phase="data_wait", duration=end - began, error=words), end)

    def _emit(self, event: Event, monotonic: int | None = None) -> None:
        """Write an event, by default one that happens now."""
        writer = self._writer
        if writer is None:
            return
        now, wall = _now(), time.time_ns()
        monotonic = now if monotonic is None else monotonic
        try:
            checked = from_fields(event.name, self._plain_fields(event))
        except WireError as error:
            self.misuse("event", str(error))
            return
        writer.event(checked, self._attempt, self._rank, monotonic, wall + monotonic - now)
        writer.slots[Slot.ACTIVITY] = now

    def _plain_fields(self, event: Event) -> dict[str, Any]:
        """Return the fields of an event, numbers of other libraries as Python's own."""
        found = {}
        for name in specs(type(event)):
            value = getattr(event, name)
            if isinstance(value, float | numbers.Real) and not isinstance(value, numbers.Integral):
                value = float(value)
                if not math.isfinite(value):
                    self.misuse("not_finite", f"{name} of {event.name} is {value}")
                    continue
            elif isinstance(value, numbers.Integral) and not isinstance(value, bool):
                value = int(value)
            elif isinstance(value, str) and len(value) > LONGEST_TEXT:
                value = value[:LONGEST_TEXT]
            if value is not None:
                found[name] = value
        return found

    def _show_phases(self) -> None:
        if self._writer is not None:
            self._writer.phases(list(self._phases))

    def _tell(self, kind: str, detail: str) -> None:
        self._report(kind, detail)
        self._emit(Misuse(kind=kind, detail=detail))

    def _report(self, kind: str, message: str) -> None:
        self._reported.add(kind)
        import logging  # costs more to import than the rest, and most processes report nothing

        logging.getLogger("headway").warning("headway: %s", message)

    def _at_exit(self) -> None:
        error = getattr(sys, "last_value", None)
        if isinstance(error, BaseException):  # what ended the program, if nobody caught it
            self.exception(error)
        self.close()

    def _detach(self) -> None:
        self._writer = self._timer.writer = None
        self._timer.slots = None

    def _forked(self) -> None:
        writer = self._writer
        self._detach()
        if writer is not None:
            writer.abandon()


class Phase:
    """One phase as a `with` block."""

    __slots__ = ("_recorder", "name", "opened")

    def __init__(self, recorder: Recorder, name: str) -> None:
        """Prepare it; nothing is recorded yet."""
        self._recorder = recorder
        self.name = name
        self.opened: OpenPhase | None = None

    def __enter__(self) -> "Phase":
        """Record the entry."""
        self._recorder.enter_phase(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Record the end, and the exception that caused it if any."""
        self._recorder.leave_phase(self, error)


def inert() -> Recorder:
    """Return a recorder that records nothing."""
    return Recorder(settings=RecorderSettings(enabled=False))


def _path(path: Path | str | None) -> Path | None:
    return None if path is None else Path(path)


def _program() -> str:
    name = Path(sys.argv[0]).stem if sys.argv else ""
    return name if name and not name.startswith("-") else "run"


_live: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _after_fork() -> None:
    """Silence the recorders of a forked child; the parent's go on."""
    for recorder in list(_live):
        recorder._forked()
    _live.clear()


os.register_at_fork(after_in_child=_after_fork)
