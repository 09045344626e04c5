"""What one rank trains: a sharded model, its optimizer, and a loader that knows where it is."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh

from headway.exporter.training import model as models
from headway.exporter.training.data import NUM_SYMBOLS, Arithmetic, Batch, ResumableLoader

SHAPE = models.ModelShape(num_symbols=NUM_SYMBOLS)
"""The model's size."""
_SAMPLES = 4096
_HELD_OUT = 32


class Replica:
    """Model, optimizer and loader of one attempt."""

    def __init__(
        self,
        *,
        mesh: DeviceMesh,
        device: torch.device,
        rank: int,
        world_size: int,
        global_batch: int,
        seed: int,
    ) -> None:
        """Build them on one rank, to start from step 0."""
        self._seed = seed
        self._mesh = mesh
        self._device = device
        self._world_size = world_size
        self.loader = _loader(_SAMPLES, seed, global_batch, rank, world_size)
        held_out = _loader(_HELD_OUT, seed + 1, global_batch, rank, world_size)
        self._held_out = list(islice(held_out, _HELD_OUT // global_batch))
        self.build()

    def build(self) -> None:
        """Start from the initial weights."""
        self._model = models.build(SHAPE, self._mesh, self._device, self._seed)
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-3)
        self.loader.consumed = 0

    def step(self, batch: Batch, *, wants_stop: bool) -> tuple[float, bool]:
        """Train on one batch; return the loss over all ranks, and whether any of them wants a stop.

        One collective operation tells both, so that all ranks stop after the same step.
        """
        loss = self._loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._optimizer.zero_grad()
        totals = torch.tensor([float(loss.detach()), float(wants_stop)])
        dist.all_reduce(totals)
        return float(totals[0]) / self._world_size, bool(totals[1])

    def held_out(self) -> list[Batch]:
        """Return the samples that are never trained on."""
        return [Batch(*(tokens.to(self._device) for tokens in one)) for one in self._held_out]

    def evaluate(self, batches: Sequence[Batch]) -> float:
        """Return the mean loss over all ranks."""
        with torch.no_grad():
            losses = torch.stack([self._loss(batch) for batch in batches])
        mean = losses.mean().cpu()
        dist.all_reduce(mean)
        return float(mean) / self._world_size

    def _loss(self, batch: Batch) -> torch.Tensor:
        inputs, targets = (tokens.to(self._device) for tokens in batch)
        loss: torch.Tensor = self._model(inputs, targets)
        return loss

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


def _loader(
    num_samples: int, seed: int, global_batch: int, rank: int, world_size: int
) -> ResumableLoader:
    return ResumableLoader(
        Arithmetic(num_samples, SHAPE.length, seed),
        global_batch=global_batch,
        rank=rank,
        world_size=world_size,
        seed=seed,
    )
