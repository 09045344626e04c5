"""The recorder: what a training process calls.

It never raises into the training, waits for nobody and touches no GPU: whatever goes wrong in
here is counted, reported once and given up. It has no thread of its own; whoever reads the spool
tells from its header that the process is alive and what it is doing.
"""

import atexit
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from headway import settings as settings_module
from headway.events import (
    Event,
    Resumed,
    RunConfigured,
    RunStarted,
    Steps,
    StepsSummary,
)
from headway.exporter import identity
from headway.exporter.ends import MARK, leave_to_parent
from headway.exporter.recording import failures
from headway.exporter.recording.attempts import Attempts
from headway.exporter.recording.complaints import Complaints, harmless
from headway.exporter.recording.data_waits import DataWaits
from headway.exporter.recording.membership import Membership, imported_by_a_worker, membership
from headway.exporter.recording.observers import Observer, Observers
from headway.exporter.recording.phases import Phase, Phases
from headway.exporter.recording.plain_values import named, plain_fields, plain_int
from headway.exporter.recording.step_timer import StepTimer
from headway.exporter.recording.unusual_steps import LARGEST_STEP, UnusualSteps
from headway.exporter.spooling.layout import (
    OpenPhase,
    Producer,
    Slot,
    agent_is_shipping,
    spool_folder,
)
from headway.exporter.spooling.writer import SpoolWriter
from headway.settings import RecorderSettings
from headway.wire import WireError, from_fields, specs

_now = time.monotonic_ns


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
        self._complaints = Complaints(self.emit)
        self._writer: SpoolWriter | None = None
        self._unusual = UnusualSteps(self)
        self._timer = self._unusual.timer
        self.observers = Observers(self)
        self._phases = Phases(self)
        self._waits = DataWaits(self, self._timer)
        self._rank: int | None = None
        self._key: tuple[str, str, int] | None = None
        self._attempts = Attempts(self, self._timer, self._phases)
        self._exit_delay = 0.0
        self._tells_cost = False
        self._start(run, rank, checkpoints, settings)

    @harmless
    def _start(
        self,
        run: str | None,
        rank: int | None,
        checkpoints: Path | None,
        settings: RecorderSettings | None,
    ) -> None:
        try:
            settings = settings or settings_module.load(RecorderSettings)
        except settings_module.SettingError as error:
            self._complaints.report("wrong_setting", f"{error}; nothing is recorded")
            return
        if not settings.enabled or imported_by_a_worker():
            return
        self._exit_delay = settings.exit_delay
        # Absolute, because a program may change its folder later, as Hydra does.
        folder = spool_folder(settings.spool).absolute()
        earlier = _closed
        found = membership(run, rank, checkpoints, settings, os.environ, earlier)
        self._attempts.membership, self._rank = found, found.rank
        self._key = (str(folder), found.run, found.rank)
        self._tells_cost = not found.ranks.local_rank
        for other in _live:
            if other._key == self._key and other._writer is not None:
                other.misuse(
                    "second_recorder",
                    "a second Recorder of this rank records nothing; use the first one, or "
                    "close it before",
                )
                return
        if not self._open_spool(folder, settings, found):
            return
        for kind, detail in found.complaints:
            self.misuse(kind, detail)
        # A process that has trained before began this training now.
        started = None if earlier else identity.process_started()
        if found.announces:
            self.emit(RunStarted(run_name=found.name), started)
        self.attempt(layer=found.launch.layer, started=started)
        if not found.ranks.local_rank:
            for sentence in settings_module.unread_variables():
                self._complaints.report(sentence, sentence)
        if not found.ranks.local_rank and not agent_is_shipping(folder):
            from shlex import quote  # rarely needed

            self._complaints.report(
                "no_agent",
                f"recording to {str(folder)!r}, and no agent ships it: start `headway agent` on "
                f"this node, or later run `headway import spool {quote(str(folder))}`",
            )

    def _open_spool(self, folder: Path, settings: RecorderSettings, found: Membership) -> bool:
        producer = Producer(
            producer=os.urandom(16).hex(),
            anchor=identity.clock_anchor(_now, time.time_ns),
            run=found.run,
            rank=found.rank,
            node=identity.node(os.environ),
            boot_id=identity.boot_id(),
            process_id=os.getpid(),
        )
        try:
            writer = SpoolWriter(
                folder, producer, settings.spool_limit, self._spool_is_full, shared=settings.shared
            )
        except OSError as error:
            self._complaints.report(
                "unwritable_spool",
                f"cannot write a spool in {str(folder)!r}: {error}; nothing is recorded; "
                "set HEADWAY_SPOOL to a folder on a local disk with room",
            )
            return False
        leave_to_parent(writer.folder, os.environ.get(MARK, ""))
        self._writer = self._timer.writer = writer
        self._timer.slots = writer.slots
        _live.add(self)
        atexit.register(self._at_exit)
        return True

    # Attempts

    @harmless
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
        self._attempts.begin(
            layer=layer,
            iteration=iteration,
            launcher_round=launcher_round,
            scheduler_job=scheduler_job,
            world_size=world_size,
            started=started,
        )

    @harmless
    def confirm(self, launch: str) -> None:
        """Tell this launch from others by a word that its ranks agreed on once they had met.

        For a program on many nodes that no launcher and no scheduler counts: started again at the
        same address it looks the same. The records of the attempt so far are bound to it.
        """
        if isinstance(launch, str):
            self._attempts.confirm(launch)

    @harmless
    def end_attempt(self, error: BaseException | None = None) -> None:
        """Record that this rank left the attempt, and the exception that made it leave."""
        if error is not None:
            self.exception(error)
        self._attempts.end("the rank itself")

    @harmless
    def resumed(
        self, completed: int, checkpoint: str | None = None, requested: str | None = None
    ) -> None:
        """Record that training continues after `completed` optimizer steps."""
        number = plain_int(completed)
        if number is None or number > LARGEST_STEP:
            self.misuse("resumed", f"completed must be a whole number, got {named(completed)}")
            return
        self._timer.number = number
        self.emit(Resumed(completed=number, checkpoint=checkpoint, requested=requested))

    # Time

    def phase(self, name: str) -> "Phase":
        """Return a context manager that records a phase: one of the declared, or `custom:NAME`."""
        return Phase(self._phases, name)

    def step(self, number: int) -> StepTimer:
        """Return a context manager that records a completed optimizer step, counted from 1."""
        timer = self._timer
        if type(number) is not int or number != timer.number + 1 or timer.start:
            return self._unusual.begin(number)
        timer.number = number
        timer.loss = timer.samples = None
        return timer

    def batches(self, iterable: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches; the wait for each counts as data wait of the next step."""
        return self._waits.batches(iterable)

    def batch_awaited(self) -> None:
        """Begin to wait for the next step's batch, for trainers that fetch batches themselves."""
        self._waits.awaited()

    def batch_arrived(self) -> None:
        """End the wait that `batch_awaited` began."""
        self._waits.arrived()

    # Facts

    @harmless
    def record(self, event: Event) -> None:
        """Record any declared event as having happened now."""
        if not isinstance(event, Event) or isinstance(event, Steps | StepsSummary):
            self.misuse("record", f"cannot record {named(event)}; steps go through `step`")
            return
        if isinstance(event, RunConfigured):
            from headway.exporter.recording.surroundings import completed  # once in an attempt

            event = completed(event)
        self.emit(event)

    @harmless
    def exception(self, error: BaseException) -> None:
        """Record an exception as a fault, where and when it left a step or phase; once each.

        A person's Ctrl-C is no fault, nor is a program's own decision to exit well.
        """
        if self._writer is None or failures.is_recorded(error):
            return
        seen = _now()  # reading the traceback takes longer than a step may
        if isinstance(error, SystemExit) and not error.code:
            return
        event, left = failures.told(error)
        self.emit(event, seen if left is None else left)

    @harmless
    def close(self) -> None:
        """Record that nothing will follow; called at the interpreter's exit at the latest."""
        writer = self._writer
        if writer is None:
            return
        self._attempts.end("the recorder's end")
        self._detach()
        _closed_one()
        _live.discard(self)
        atexit.unregister(self._at_exit)
        writer.close(self._exit_delay)

    def observe(self, observer: Observer) -> None:
        """Tell `observer` of every phase and step from now on, also where nothing is recorded."""
        self.observers.add(observer)
        self._unusual.observe()

    @property
    def open_phases(self) -> tuple[str, ...]:
        """Names of the phases that are open, the innermost last."""
        return self._phases.names()

    # For the parts of the exporter

    def __reduce__(self) -> tuple[Callable[[], "Recorder"], tuple[()]]:
        """Travel to worker processes as a recorder that records nothing."""
        return inert, ()

    def __deepcopy__(self, memo: Mapping[int, Any]) -> "Recorder":
        """Stay itself when a wrapper copies the state that holds it."""
        return self

    @property
    def suppressed_failures(self) -> int:
        """How often something would have been raised into the training."""
        return self._complaints.suppressed_failures

    def suppressed(self, failure: Exception) -> None:
        """Count what would have been raised into the training."""
        self._complaints.suppressed(failure)

    @property
    def next_sequence(self) -> int:
        """Sequence number of the next record."""
        return 0 if self._writer is None else self._writer.sequence

    def misuse(self, kind: str, detail: str) -> None:
        """Report a way of use that makes no sense, and record it, once per kind."""
        if self._writer is not None:
            self._complaints.misuse(kind, detail)

    def emit(self, event: Event, monotonic: int | None = None) -> None:
        """Write an event, by default one that happens now."""
        writer = self._writer
        if writer is None:
            return
        now, wall = _now(), time.time_ns()
        monotonic = now if monotonic is None else monotonic
        values = {name: getattr(event, name) for name in specs(type(event))}
        fields, left_out = plain_fields(values)
        if left_out:
            self.misuse("field", f"{event.name}: {left_out[0]}")
        try:
            checked = from_fields(event.name, fields)
        except WireError as error:
            self.misuse("event", str(error))
            return
        writer.event(checked, self._attempts.current, self._rank, monotonic, wall + monotonic - now)
        writer.slots[Slot.ACTIVITY] = now
        if self._tells_cost:
            self._unusual.own_cost.look(now)

    def show_phases(self, phases: list[OpenPhase]) -> None:
        """Show which phases are open to whoever reads the spool."""
        if self._writer is not None:
            self._writer.phases(phases)

    def end_wait(self) -> None:
        """Record the wait for a batch as a phase where something else than its step follows."""
        self._waits.end()

    def end_wait_at(self, start: int) -> None:
        """Record the wait for the batch of a step that began at `start` and was not completed."""
        self._waits.end_at(start)

    def _spool_is_full(self, reason: str) -> None:
        self._complaints.report(
            "full_spool",
            f"the spool has no room: {reason}; records are dropped and counted until there is "
            "some; start `headway agent` on this node, which ships and deletes what is there",
        )

    def _at_exit(self) -> None:
        error = getattr(sys, "last_value", None)
        # What ended the program, if nobody caught it; an interactive session lives on.
        if isinstance(error, BaseException) and not hasattr(sys, "ps1"):
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


def inert() -> Recorder:
    """Return a recorder that records nothing."""
    return Recorder(settings=RecorderSettings(enabled=False))


def _closed_one() -> None:
    global _closed
    _closed += 1


_closed = 0
"""Recorders that this process has closed."""
_live: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _after_fork() -> None:
    """Silence the recorders of a forked child; the parent's go on."""
    for recorder in list(_live):
        recorder._forked()
    _live.clear()


os.register_at_fork(after_in_child=_after_fork)
