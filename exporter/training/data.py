"""A deterministic data set and a loader that resumes exactly where a checkpoint left it.

Sample i is the same tokens in every process and attempt, and the order of samples depends on the
seed and the epoch alone, so the batch of a step is known from the number of samples consumed
before it, whatever the world size.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch

NUM_SYMBOLS = 64
"""Size of the vocabulary."""


class Batch(NamedTuple):
    """One rank's share of a global batch: tokens and the tokens that follow them."""

    inputs: torch.Tensor
    targets: torch.Tensor


class Arithmetic:
    """Sequences that count up in a fixed stride: simple enough to be learned in minutes."""

    def __init__(self, num_samples: int, length: int, seed: int) -> None:
        """Describe the data set; nothing is generated before it is asked for."""
        self._num_samples = num_samples
        self._length = length
        self._seed = seed

    def __len__(self) -> int:
        """Return the number of samples."""
        return self._num_samples

    def __getitem__(self, index: int) -> torch.Tensor:
        """Return the tokens of one sample, one more than the length."""
        generator = torch.Generator().manual_seed(self._seed * self._num_samples + index)
        start, stride = torch.randint(NUM_SYMBOLS, (2,), generator=generator).tolist()
        tokens = (start + stride % 8 * torch.arange(self._length + 1)) % NUM_SYMBOLS
        noise = torch.rand(self._length + 1, generator=generator) < 0.02
        return torch.where(noise, (tokens + 1) % NUM_SYMBOLS, tokens)


class ResumableLoader:
    """Yields this rank's share of each global batch and counts the samples of all ranks."""

    def __init__(
        self, data: Arithmetic, *, global_batch: int, rank: int, world_size: int, seed: int
    ) -> None:
        """Prepare to read from the first sample.

        Raises:
            ValueError: a global batch that the ranks cannot share or the data set cannot fill.
        """
        if global_batch % world_size or global_batch > len(data):
            raise ValueError(
                f"a global batch of {global_batch} samples must be a multiple of the "
                f"{world_size} ranks and at most the {len(data)} samples of the data set"
            )
        self._data = data
        self._global_batch = global_batch
        self._share = global_batch // world_size
        self._rank = rank
        self._seed = seed
        self._epoch: int | None = None
        self._order = torch.empty(0, dtype=torch.long)
        self.consumed = 0
        """Samples that all ranks together have taken since step 0; set it to resume."""

    def __iter__(self) -> Iterator[Batch]:
        """Yield batches without end, from `consumed` on."""
        while True:
            yield self._next()

    def _next(self) -> Batch:
        batches = len(self._data) // self._global_batch  # an epoch drops its last partial batch
        epoch, batch = divmod(self.consumed // self._global_batch, batches)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(self._seed + epoch)
            self._order = torch.randperm(len(self._data), generator=generator)
            self._epoch = epoch
        first = batch * self._global_batch + self._rank * self._share
        chosen = self._order[first : first + self._share].tolist()
        tokens = torch.stack([self._data[index] for index in chosen])
        self.consumed += self._global_batch
        return Batch(tokens[:, :-1], tokens[:, 1:])
