"""The training itself: builds, resumes, steps and saves, as often as it is restarted.

Restarts happen inside the process (`headway.exporter.nvrx`) or by whoever started it; either way
an attempt begins with the newest readable checkpoint and repeats exactly the steps after it.
"""

import logging
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.distributed_c10d import PrefixStore

from headway.events import Allocation, Note, RunConfigured, RunEnded
from headway.exporter.nvrx.gloo import GlooSockets
from headway.exporter.nvrx.in_process import InProcess, InProcessLimits
from headway.exporter.recorder import Recorder
from headway.exporter.training import devices
from headway.exporter.training import model as models
from headway.exporter.training.checkpoints import Checkpoints
from headway.exporter.training.data import NUM_SYMBOLS, Arithmetic, Batch, ResumableLoader
from headway.exporter.training.faults import FaultInjector, PlannedFault
from headway.exporter.training.stores import SharedStore, shared_store

_SECOND = 10**9
_SHAPE = models.ModelShape(num_symbols=NUM_SYMBOLS)
_SAMPLES = 4096
_GROUP_TIMEOUT = timedelta(seconds=120)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to train and what to break."""

    directory: Path
    steps: int
    checkpoint_every: int
    global_batch: int
    seed: int
    max_restarts: int
    faults: tuple[PlannedFault, ...]


class Trainer:
    """One process of the training."""

    def __init__(self, plan: Plan, recorder: Recorder) -> None:
        """Join the other ranks."""
        self._plan = plan
        self._recorder = recorder
        self._rank = int(os.environ["RANK"])
        self._world_size = int(os.environ["WORLD_SIZE"])
        folder = plan.directory / "checkpoints"
        self._device = devices.choose(os.environ)
        with recorder.phase("rendezvous"):
            self._shared: SharedStore = shared_store(self._rank, _GROUP_TIMEOUT)
        self._checkpoints = Checkpoints(recorder, folder, rank=self._rank)
        self._faults = FaultInjector(plan.faults, rank=self._rank, memory=plan.directory / "faults")
        if self._rank == 0:
            self._introduce()

    def run(self) -> None:
        """Train to the last step, restarting in process after faults."""
        limits = InProcessLimits()
        sockets = GlooSockets({self._shared.address.port, self._shared.launcher_port})
        in_process = InProcess(
            self._recorder,
            store=self._shared.address,
            limits=limits,
            max_restarts=self._plan.max_restarts,
            abandon=self._checkpoints.abandon,
            log=self._plan.directory / "monitor-{rank}.log",
            sockets=sockets,
        )
        with self._recorder.phase("warmup"):
            self._checkpoints.start()  # blocks for seconds, so before the wrapper's watchdog
        try:
            in_process.run(lambda iteration: self._attempt(iteration, limits, sockets))
        finally:
            self._checkpoints.close()

    def _attempt(self, iteration: int, limits: InProcessLimits, sockets: GlooSockets) -> None:
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if rank == 0:
            self._recorder.record(_configuration(self._plan, world_size, limits))
        with self._recorder.phase("rendezvous"), sockets.opened_here():
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if self._device.type == "cuda" else "gloo",
                store=PrefixStore(f"training/{iteration}", self._shared.store),
                rank=rank,
                world_size=world_size,
                timeout=_GROUP_TIMEOUT,
            )
            mesh = init_device_mesh(self._device.type, (world_size,))
        with self._recorder.phase("model"):
            self._checkpoints.start()
            replica = _Replica(self._plan, mesh, self._device, rank, world_size)
        if iteration == 0:
            # Later a new writing process starts while the training already goes on.
            with self._recorder.phase("warmup"):
                self._checkpoints.warm_up()
        completed = self._resume(replica)
        self._train(replica, completed, leader=rank == 0)
        self._checkpoints.finish()
        dist.barrier()
        if rank == 0:
            self._conclude()
        dist.destroy_process_group()

    def _resume(self, replica: "_Replica") -> int:
        """Restore the newest readable checkpoint; return the steps it holds."""
        loaded = self._checkpoints.load(replica.state)
        if loaded is None:
            completed, checkpoint, requested = 0, None, None
            replica.build()  # a failed load has touched the optimizer
        else:
            completed, checkpoint, requested = loaded.step, loaded.checkpoint, loaded.requested
            replica.restore(loaded.state)
        self._recorder.resumed(completed=completed, checkpoint=checkpoint, requested=requested)
        self._say(f"resumed from {checkpoint or 'the beginning'}: {completed} steps are done")
        return completed

    def _train(self, replica: "_Replica", completed: int, *, leader: bool) -> None:
        plan, every = self._plan, max(self._plan.steps // 20, 1)
        batches = iter(self._recorder.batches(replica.loader))
        # A fault planned for a step that this attempt starts beyond is still due.
        self._faults.strike(completed, self._announce)
        for step in range(completed + 1, plan.steps + 1):
            batch = next(batches)
            with self._recorder.step(step) as record:
                loss = replica.step(batch)
                record.loss = loss
                record.samples = replica.loader.consumed
            self._checkpoints.poll()
            if step % plan.checkpoint_every == 0 or step == plan.steps:
                self._checkpoints.save(step, replica.state)
            if leader and (step % every == 0 or step == completed + 1):
                self._say(f"step {step} of {plan.steps}, loss {loss:.4f}")
            self._faults.strike(step, self._announce)

    def _announce(self, fault: PlannedFault) -> None:
        text = f"injecting {fault.type} planned after step {fault.step} into rank {fault.rank}"
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
        for fault in self._faults.pending():
            text = f"planned {fault.type} after step {fault.step} on rank {fault.rank} never struck"
            self._recorder.record(Note(text=text, author="fault schedule"))
            print(text, flush=True)
        self._recorder.record(RunEnded(reason="completed"))
        self._say(f"completed {self._plan.steps} steps")

    def _say(self, text: str) -> None:
        if self._rank == 0:
            print(text, flush=True)


class _Replica:
    """Model, optimizer and loader of one attempt."""

    def __init__(
        self, plan: Plan, mesh: Any, device: torch.device, rank: int, world_size: int
    ) -> None:
        self._plan = plan
        self._mesh = mesh
        self._device = device
        self._world_size = world_size
        data = Arithmetic(_SAMPLES, _SHAPE.length, plan.seed)
        self.loader = ResumableLoader(
            data,
            global_batch=plan.global_batch,
            rank=rank,
            world_size=world_size,
            seed=plan.seed,
        )
        self.build()

    def build(self) -> None:
        """Start from the initial weights."""
        self._model = models.build(_SHAPE, self._mesh, self._device, self._plan.seed)
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-3)
        self.loader.consumed = 0

    def step(self, batch: Batch) -> float:
        """Train on one batch; return the loss over all ranks."""
        inputs, targets = (tokens.to(self._device) for tokens in batch)
        loss: torch.Tensor = self._model(inputs, targets)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._optimizer.zero_grad()
        total = loss.detach().cpu()
        dist.all_reduce(total)
        return float(total) / self._world_size

    def state(self) -> dict[str, Any]:
        """Return all that a checkpoint must hold; it aliases the live state."""
        model, optimizer = get_state_dict(self._model, self._optimizer)
        consumed = torch.tensor(self.loader.consumed)
        return {"model": model, "optimizer": optimizer, "consumed": consumed}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that was read back."""
        set_state_dict(
            self._model,
            self._optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        self.loader.consumed = int(state["consumed"])


def _configuration(plan: Plan, world_size: int, limits: InProcessLimits) -> RunConfigured:
    group = round(_GROUP_TIMEOUT.total_seconds() * _SECOND)
    launcher = os.environ.get("TORCHELASTIC_MAX_RESTARTS")
    outer = {} if launcher is None else {"launcher": int(launcher)}
    return RunConfigured(
        target_step=plan.steps,
        checkpoint_interval=plan.checkpoint_every,
        world_size=world_size,
        min_world_size=1,
        parallelism={"fsdp": world_size},
        timeouts={**limits.timeouts(), "process_group": group},
        restart_limits={"in_process": plan.max_restarts, **outer},
        versions={
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "nvidia-resiliency-ext": metadata.version("nvidia-resiliency-ext"),
        },
        tokens_per_step=plan.global_batch * _SHAPE.length,
        options={"seed": plan.seed, "faults": len(plan.faults), "global_batch": plan.global_batch},
    )


def run(plan: Plan, recorder: Recorder) -> None:
    """Train in this process, one of those that a launcher started."""
    # NVRx takes over the root logger's handlers as they are when its wrapper is called.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("nvidia_resiliency_ext").setLevel(logging.ERROR)  # restarts are recorded
    Trainer(plan, recorder).run()
