"""The training itself: builds, resumes, steps and saves, as often as it is restarted.

Restarts happen inside the process (`headway.exporter.nvrx`) or by whoever started it; either way
an attempt begins with the newest readable checkpoint and repeats exactly the steps after it.
"""

import logging
import os
import platform
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib import metadata
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.distributed_c10d import PrefixStore

from headway.events import Allocation, Note, RunConfigured, RunEnded
from headway.exporter.nvrx.budgets import record_launcher_budget
from headway.exporter.nvrx.gloo import GlooSockets
from headway.exporter.nvrx.heartbeats import Heartbeats
from headway.exporter.nvrx.in_process import InProcess, InProcessLimits
from headway.exporter.recording.recorder import Recorder
from headway.exporter.training import devices
from headway.exporter.training.blocking_writer import BlockingWriter
from headway.exporter.training.checkpoints import Checkpoints
from headway.exporter.training.faults import MEMORY, PlannedFault
from headway.exporter.training.injector import FaultInjector, words
from headway.exporter.training.replica import SHAPE, Replica
from headway.exporter.training.stop import StopRequest
from headway.exporter.training.stores import SharedStore, shared_store
from headway.exporter.training.writer import BackgroundWriter

_SECOND = 10**9
_MEETING_TIMEOUT = timedelta(seconds=120)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to train and what to break."""

    directory: Path
    steps: int
    checkpoint_every: int
    global_batch: int
    seed: int
    save: str
    """`sync` or `async`."""
    evaluate_every: int
    """Steps between two evaluations; 0 means never."""
    recovery: str
    """`in_process` or `none`."""
    max_restarts: int
    hang_timeout: float
    """Seconds without progress after which a rank counts as hung."""
    faults: tuple[PlannedFault, ...]


class Trainer:
    """One process of the training."""

    def __init__(self, plan: Plan, recorder: Recorder, stop: StopRequest) -> None:
        """Join the other ranks."""
        self._plan = plan
        self._recorder = recorder
        self._stop = stop
        self._stopped = False
        self._rank = int(os.environ["RANK"])
        self._world_size = int(os.environ["WORLD_SIZE"])
        self._device = devices.choose(os.environ)
        gpu = devices.identity(self._device, os.environ)
        if gpu is not None:
            recorder.record(gpu)
        record_launcher_budget(recorder, os.environ)
        self._heartbeats = Heartbeats(recorder)
        self._heartbeats.start()
        with recorder.phase("rendezvous"):
            self._shared: SharedStore = shared_store(self._rank, _MEETING_TIMEOUT)
        self._faults = FaultInjector(
            plan.faults,
            rank=self._rank,
            memory=plan.directory / MEMORY,
            announce=self._announce,
            wait_for_stop=stop.wait,
        )
        self._checkpoints = Checkpoints(
            recorder,
            plan.directory / "checkpoints",
            writer=BackgroundWriter(self._rank) if plan.save == "async" else BlockingWriter(),
            rank=self._rank,
            faults=self._faults,
        )
        if self._rank == 0:
            self._introduce()

    def run(self) -> bool:
        """Train to the last step; return whether the training was told to stop before.

        After a fault it restarts in the processes, or ends them, as planned.
        """
        self._sockets = GlooSockets({self._shared.address.port, self._shared.launcher_port})
        with self._recorder.phase("warmup"):
            self._checkpoints.start()  # blocks for seconds, so before the wrapper's watchdog
        try:
            if self._plan.recovery == "in_process":
                self._restart_in_process()
            else:
                self._attempt(0)
        except BaseException:
            self._checkpoints.abandon()
            raise
        finally:
            self._checkpoints.close()
        return self._stopped

    def _restart_in_process(self) -> None:
        InProcess(
            self._recorder,
            store=self._shared.address,
            limits=_limits(self._plan),
            max_restarts=self._plan.max_restarts,
            abandon=self._checkpoints.abandon,
            folder=self._plan.directory,
            sockets=self._sockets,
            heartbeats=self._heartbeats,
        ).run(self._attempt)

    def _attempt(self, iteration: int) -> None:
        plan, recorder = self._plan, self._recorder
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if rank == 0:
            recorder.record(_configuration(plan, world_size, self._heartbeats.timeouts()))
        with recorder.phase("rendezvous"), self._sockets.opened_here():
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if self._device.type == "cuda" else "gloo",
                store=PrefixStore(f"training/{iteration}", self._shared.store),
                rank=rank,
                world_size=world_size,
                timeout=timedelta(seconds=2 * plan.hang_timeout),
            )
            mesh = init_device_mesh(self._device.type, (world_size,))
            if iteration == 0:
                words = [uuid.uuid4().hex]
                dist.broadcast_object_list(words, src=0)
                recorder.confirm(words[0])
        with recorder.phase("model"):
            self._checkpoints.start()
            self._faults.strike("startup", 0)
            replica = Replica(
                mesh=mesh,
                device=self._device,
                rank=rank,
                world_size=world_size,
                global_batch=plan.global_batch,
                seed=plan.seed,
            )
        if iteration == 0:
            # Later a new writing process starts while the training already goes on.
            with recorder.phase("warmup"):
                self._checkpoints.warm_up()
        completed = self._resume(replica)
        self._stopped = self._train(replica, completed, leader=rank == 0)
        self._checkpoints.finish()
        dist.barrier()
        if rank == 0:
            self._conclude()
        dist.destroy_process_group()

    def _resume(self, replica: Replica) -> int:
        """Restore the newest readable checkpoint; return the steps it holds."""
        loaded = self._checkpoints.load(replica.state)
        completed, checkpoint, requested = loaded.step, loaded.checkpoint, loaded.requested
        if checkpoint is None:
            replica.build()  # a failed load has touched the optimizer
        else:
            replica.restore(loaded.state)
        self._recorder.resumed(completed=completed, checkpoint=checkpoint, requested=requested)
        self._say(f"resumed from {checkpoint or 'the beginning'}: {completed} steps are done")
        return completed

    def _train(self, replica: Replica, completed: int, *, leader: bool) -> bool:
        """Take the steps that are left; return whether the group stops before the last one."""
        plan, every = self._plan, max(self._plan.steps // 20, 1)
        batches = iter(self._recorder.batches(replica.loader))
        # A fault planned for a step that this attempt starts beyond is still due.
        self._faults.strike("step", completed)
        for step in range(completed + 1, plan.steps + 1):
            batch = next(batches)
            with self._recorder.step(step) as record:
                loss, stops = replica.step(batch, wants_stop=self._stop.was_made)
                record.loss = loss
                record.samples = replica.loader.consumed
            self._checkpoints.poll()
            if stops or step % plan.checkpoint_every == 0 or step == plan.steps:
                self._checkpoints.save(step, replica.state)
            if stops:
                return step < plan.steps
            if plan.evaluate_every and step % plan.evaluate_every == 0:
                self._evaluate(replica, step)
            if leader and (step % every == 0 or step == completed + 1):
                self._say(f"step {step} of {plan.steps}, loss {loss:.4f}")
            self._faults.strike("step", step)
        return False

    def _evaluate(self, replica: Replica, step: int) -> None:
        with self._recorder.phase("evaluation"):
            self._faults.strike("evaluation", step)
            with self._recorder.phase("data_wait"):
                batches = replica.held_out()
            loss = replica.evaluate(batches)
        self._say(f"evaluated after step {step}, loss {loss:.4f}")

    def _announce(self, text: str) -> None:
        self._recorder.record(Note(text=text, author="fault schedule"))
        print(text, flush=True)

    def _introduce(self) -> None:
        local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        # Without GPUs the ranks count as the devices that the run holds.
        self._recorder.record(
            Allocation(
                gpus_held=self._world_size,
                gpus_requested=self._world_size,
                nodes_held=self._world_size // local,
                source="loop",
            )
        )

    def _conclude(self) -> None:
        if self._stopped:
            self._say("stopped before the last step")
            return
        for fault in self._faults.pending():
            text = f"{words(fault)} never struck"
            self._recorder.record(Note(text=text, author="fault schedule"))
            print(text, flush=True)
        self._recorder.record(RunEnded(reason="completed"))
        self._say(f"completed {self._plan.steps} steps")

    def _say(self, text: str) -> None:
        if self._rank == 0:
            print(text, flush=True)


def _limits(plan: Plan) -> InProcessLimits:
    return InProcessLimits(
        soft_timeout=plan.hang_timeout,
        hard_timeout=1.5 * plan.hang_timeout,
        heartbeat_timeout=plan.hang_timeout,
        barrier_timeout=3 * plan.hang_timeout,
        completion_timeout=2 * plan.hang_timeout,
    )


def _configuration(
    plan: Plan, world_size: int, launcher_timeouts: Mapping[str, int]
) -> RunConfigured:
    timeouts = {**launcher_timeouts, "process_group": round(2 * plan.hang_timeout * _SECOND)}
    restarts = {}
    if plan.recovery == "in_process":
        timeouts |= _limits(plan).timeouts()
        restarts["in_process"] = plan.max_restarts
    launcher = os.environ.get("TORCHELASTIC_MAX_RESTARTS")
    if launcher is not None:
        restarts["launcher"] = int(launcher)
    return RunConfigured(
        target_step=plan.steps,
        checkpoint_interval=plan.checkpoint_every,
        world_size=world_size,
        min_world_size=1,
        parallelism={"fsdp": world_size},
        timeouts=timeouts,
        restart_limits=restarts,
        versions={
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "nvidia-resiliency-ext": metadata.version("nvidia-resiliency-ext"),
        },
        tokens_per_step=plan.global_batch * SHAPE.length,
        options={
            "seed": plan.seed,
            "faults": len(plan.faults),
            "global_batch": plan.global_batch,
            "save": plan.save,
            "evaluate_every": plan.evaluate_every,
            "recovery": plan.recovery,
        },
    )


def run(plan: Plan, recorder: Recorder, stop: StopRequest) -> bool:
    """Train in this process, one of those that a launcher started; return whether it was stopped.

    A training that was told to stop has saved before it returns.
    """
    # NVRx takes over the root logger's handlers as they are when its wrapper is called.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("nvidia_resiliency_ext").setLevel(logging.ERROR)  # restarts are recorded
    return Trainer(plan, recorder, stop).run()
