"""Writes what the published NVRx benchmark would have printed in a simulated run of its schedule.

Log lines, restart records and figures follow awslabs/awsome-distributed-ai (March 2026), whose
formulas stand in `published` as they are coded there.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from headway import events as e
from headway.simulate.truth import Simulated

SECOND = 10**9
BANNERS = {
    "in-process": "IN-PROCESS RESTART #{}",
    "launcher": "IN-JOB RESTART #{} (ft_launcher respawn)",
    "baseline": "CONTAINER RESTART #{} (Kubernetes)",
}
WATCHDOG = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, "
    "NumelOut=1, Timeout(ms)=60000) ran for {} milliseconds before timing out."
)
"""What ranks print that wait for one that is gone or hangs."""
NAMES = {
    "in-process": "in-process",
    "launcher": "in-job (ft_launcher)",
    "baseline": "container restart",
}


def benchmark_log(made: Simulated, mode: str) -> tuple[str, Mapping[str, Any]]:
    """Return the log and the `results.json` of a simulated run."""
    return _Writer(made, mode).write()


class _Writer:
    def __init__(self, made: Simulated, mode: str) -> None:
        self._events = sorted(
            made.events,
            # steps and starts end before what follows from them, whoever recorded it
            key=lambda one: (
                one.anchor + one.monotonic,
                not isinstance(one.event, e.StepsSummary),
                not isinstance(one.event, e.Fault),
                one.first_sequence,
            ),
        )
        self._mode = mode
        self._lines: list[tuple[int, str]] = []
        self._records: list[dict[str, Any]] = []
        self._begin = self._events[0].anchor + self._events[0].monotonic
        self._end = made.end
        self._fault = self._entered = 0
        self._restarts = self._faults = self._saved = self._wasted = 0
        self._highest = self._durable = 0

    def _say(self, time: int, words: str, rank: int = 0) -> None:
        moment = datetime.fromtimestamp(time // SECOND, UTC)
        stamp = f"{moment:%Y-%m-%d %H:%M:%S},{time % SECOND // 10**6:03}"
        self._lines.append((time, f"[Rank {rank}] {stamp} - __main__ - INFO - {words}"))

    def write(self) -> tuple[str, Mapping[str, Any]]:
        for envelope in self._events:
            self._event(envelope.anchor + envelope.monotonic, envelope.rank, envelope.event)
        results = self.published()
        self._say(self._end, f"TRAINING SUMMARY - {self._mode}")
        self._say(self._end, f"Training Goodput: {results['training_goodput_pct']:.1f}%")
        self._say(self._end, f"Infra Goodput: {results['infra_goodput_pct']:.1f}%")
        self._say(
            self._end,
            f"Wasted steps: {self._wasted} ({results['wasted_time_seconds']:.1f}s), "
            f"Shutdown: {results['total_shutdown_time_seconds']:.1f}s, "
            f"Startup: {results['total_startup_time_seconds']:.1f}s",
        )
        self._lines.sort(key=lambda line: line[0])
        return "".join(f"{line}\n" for _, line in self._lines), results

    def _event(self, time: int, rank: int | None, event: e.Event) -> None:
        match event:
            case e.AttemptStarted() if rank == 0:
                self._entered = time
                if time == self._begin:
                    self._say(time, "Starting training from step 0...")
                else:
                    self._restarts += 1
                    self._say(time, BANNERS[self._mode].format(self._restarts))
            case e.Resumed(completed=completed):
                self._recovered(time, completed)
            case e.StepsSummary(first_step=first, num_steps=count, duration=duration):
                for step in range(first, first + count):
                    if step % 10 == 0:
                        end = time - duration + duration * (step - first + 1) // count
                        self._say(end, f"Step {step}, Loss: 2.5000, Wall: 1s, Restarts: 0")
                self._highest = first + count - 1
            case e.Fault(message="fault" | "hang", kind=kind, ran_for=ran_for):
                self._faults += 1
                self._fault = time - (ran_for or 0)
                self._wasted += self._highest % 500
                words = f"INJECTING FAULT at step {self._highest}! type={kind}, fault "
                self._say(self._fault, f"{words}#{self._faults}", rank or 0)
                if ran_for is not None and self._mode == "launcher":
                    waited = f"Waited {ran_for / SECOND:.2f} seconds."
                    self._say(time, f"Did not get subsequent heartbeat. {waited}", rank or 0)
            case e.Fault() if rank == 0:
                # a restart that fails again had come to its loop, or it would have no record
                self._recovered(time, self._durable)
            case e.PhaseBegan(phase="checkpoint_save"):
                self._say(time, f"Saving checkpoint at step {self._highest}...")
            case e.PhaseEnded(phase="checkpoint_save", duration=duration):
                self._saved += duration
                self._durable = self._highest
                self._say(time, f"Checkpoint saved in {duration / SECOND:.3f}s")
            case e.RestartPhase(layer="scheduler", phase="stop_workers", state="began"):
                if self._entered < self._fault < time:
                    self._say(time, WATCHDOG.format((time - self._fault) // 10**6))
            case e.RestartPhase(layer="launcher", phase=phase, state="began"):
                words = {
                    "stop_workers": "Stopping workers... Timeout = 30 sec.",
                    "rendezvous": "[default] Rendezvous'ing worker group",
                }[phase]
                self._say(time, words)
            case _:
                pass

    def _recovered(self, time: int, completed: int) -> None:
        if completed:
            self._say(
                time, f"Loaded DCP checkpoint from step {completed} (dir=dcp_step_{completed})"
            )
        record = self._record(time, completed)
        self._say(
            time,
            f"Recovery overhead [{NAMES[self._mode]}]: shutdown={record['shutdown_seconds']:.1f}s, "
            f"startup={record['startup_total_seconds']:.1f}s (NCCL: 0.0s, Model: 0.0s, "
            f"Ckpt: 0.0s, DL: 0.0s), total={record['total_seconds']:.1f}s, "
            f"resumed from step {completed}",
        )
        self._say(time, f"Starting training from step {completed}...")

    def _record(self, time: int, completed: int) -> Mapping[str, Any]:
        """A restart without a new fault counts from the old one again."""
        shutdown = (self._entered - self._fault) / SECOND
        startup = (time - self._entered) / SECOND
        self._records.append(
            {
                "iteration": self._restarts,
                "type": NAMES[self._mode],
                "shutdown_seconds": shutdown,
                "startup_total_seconds": startup,
                "total_seconds": shutdown + startup,
                "resumed_from_step": completed,
            }
        )
        return self._records[-1]

    def published(self) -> Mapping[str, Any]:
        """Compute the figures by the program's own formulas."""
        wall = (self._end - self._begin) / SECOND
        shutdown = sum(one["shutdown_seconds"] for one in self._records)
        startup = sum(one["startup_total_seconds"] for one in self._records)
        saved = self._saved / SECOND
        steps = self._highest
        # in process the training time runs from the first start on; else it ends with the last save
        training = wall if self._mode == "in-process" else steps * 0.365 + saved
        step_time = (training - saved) / steps
        recoveries = [one["total_seconds"] for one in self._records]
        return {
            "job_wall_time_seconds": wall,
            "cumulative_training_time_seconds": training,
            "avg_step_time_seconds": step_time,
            "training_goodput_pct": 100 * steps * step_time / wall,
            "infra_goodput_pct": 100 * (wall - shutdown - startup) / wall,
            "recovery_times": recoveries,
            "avg_recovery_time_seconds": sum(recoveries) / len(recoveries),
            "recovery_breakdown": self._records,
            "wasted_steps": self._wasted,
            "wasted_time_seconds": self._wasted * 0.365,
            "total_shutdown_time_seconds": shutdown,
            "total_startup_time_seconds": startup,
            "total_checkpoint_time_seconds": saved,
            "setup_time_seconds": 0.0,
            "termination_reason": "max_steps_reached",
        }
