"""The attempt that a recorder is in: its identity, its begin and its end."""

import os
import time
from typing import TYPE_CHECKING

from headway.events import AttemptBound, AttemptEnded, AttemptStarted
from headway.exporter import identity
from headway.exporter.recording.membership import Membership
from headway.exporter.recording.phases import Phases
from headway.exporter.recording.step_timer import NO_NUMBER, StepTimer
from headway.exporter.spooling.layout import Slot

if TYPE_CHECKING:
    from headway.exporter.recording.recorder import Recorder

_now = time.monotonic_ns


class Attempts:
    """One attempt after the other of one rank."""

    def __init__(self, recorder: "Recorder", timer: StepTimer, phases: Phases) -> None:
        """Start with none; nothing is opened before `membership` is set."""
        self.membership: Membership | None = None
        self.current: str | None = None
        """Identity of the attempt that records belong to."""
        self._recorder = recorder
        self._timer = timer
        self._phases = phases
        self._is_open = False
        self._first_sequence = 0
        self._confirmed = ""
        self._parts: tuple[str | None, int | None, int | None] = (None, None, None)
        """Scheduler's job, launcher's round and wrapper's iteration of the attempt."""

    def begin(
        self,
        *,
        layer: str,
        iteration: int | None,
        launcher_round: int | None,
        scheduler_job: str | None,
        world_size: int | None,
        started: int | None,
    ) -> None:
        """Open an attempt, as `Recorder.attempt` says."""
        member = self.membership
        if member is None:
            return
        launch, ranks = member.launch, member.ranks
        job = scheduler_job or launch.scheduler_job
        launcher_round = launch.launcher_round if launcher_round is None else launcher_round
        self._parts = (job, launcher_round, iteration)
        attempt = self._identity(member)
        if attempt == self.current and self._is_open:
            return
        self.end("the next attempt")
        self._is_open = True
        self._first_sequence = self._recorder.next_sequence
        self._phases.clear()
        timer = self._timer
        timer.start = timer.data_wait = 0
        timer.number = NO_NUMBER
        self._name(attempt)
        if timer.slots is not None:
            timer.slots[Slot.STEP_END] = _now()
        self._recorder.emit(
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
                visible_devices=launch.visible_devices,
                scheduler=launch.scheduler,
            ),
            started,
        )

    def confirm(self, launch: str) -> None:
        """Bind the open attempt to a launch, as `Recorder.confirm` says."""
        member = self.membership
        job, launcher_round, _ = self._parts
        if member is None or not self._is_open or not member.launch.spans_nodes:
            return
        if job is not None or launcher_round is not None:
            return  # whoever counts its launches tells them apart
        self._confirmed = launch
        attempt = self._identity(member)
        if attempt == self.current:
            return
        first, last = self._first_sequence, self._recorder.next_sequence - 1
        self._name(attempt)
        bound = AttemptBound(attempt=attempt, first_sequence=first, last_sequence=last)
        self._recorder.emit(bound)

    def end(self, learned_from: str) -> None:
        """Record that this rank left the attempt, if one is open."""
        if self._is_open:
            self._is_open = False
            self._recorder.emit(AttemptEnded(learned_from=learned_from))

    def _identity(self, member: Membership) -> str:
        launch = member.launch
        job, launcher_round, iteration = self._parts
        job_or_group = launch.group + self._confirmed
        if job is not None:
            # A requeued Slurm job keeps its id, and one job may start its ranks again and again.
            job_or_group = f"{job}.{launch.slurm_restarts or 0}.{launch.slurm_step or 0}"
        return identity.attempt_id(member.run, job_or_group, launcher_round, iteration)

    def _name(self, attempt: str) -> None:
        self.current = attempt
        timer = self._timer
        timer.attempt = int(attempt, 16)
        if timer.slots is not None:
            timer.slots[Slot.ATTEMPT] = (timer.attempt + 2**63) % 2**64 - 2**63
