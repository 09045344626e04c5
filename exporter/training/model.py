"""A small decoder-only transformer, sharded block by block with FSDP."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Size of the transformer; the default takes tens of milliseconds a step on one CPU core."""

    num_symbols: int
    length: int = 64
    width: int = 128
    heads: int = 4
    blocks: int = 2


class Block(nn.Module):
    """Attention and a feed-forward layer, each added to the residual stream."""

    def __init__(self, shape: ModelShape) -> None:
        """Create the layers."""
        super().__init__()
        self.heads = shape.heads
        self.attention_norm = nn.LayerNorm(shape.width)
        self.projections = nn.Linear(shape.width, 3 * shape.width)
        self.output = nn.Linear(shape.width, shape.width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(shape.width),
            nn.Linear(shape.width, 4 * shape.width),
            nn.GELU(),
            nn.Linear(4 * shape.width, shape.width),
        )

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the residual stream after this block."""
        batch, length, width = hidden.shape
        projected = self.projections(self.attention_norm(hidden))
        split = projected.view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.output(mixed.transpose(1, 2).reshape(batch, length, width))
        result: torch.Tensor = hidden + self.feed_forward(hidden)
        return result


class Transformer(nn.Module):
    """Predicts the next token."""

    def __init__(self, shape: ModelShape) -> None:
        """Create the layers."""
        super().__init__()
        self.tokens = nn.Embedding(shape.num_symbols, shape.width)
        self.positions = nn.Embedding(shape.length, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.blocks))
        self.head = nn.Linear(shape.width, shape.num_symbols)

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of predicting `targets`, the tokens that follow `inputs`."""
        where = torch.arange(inputs.shape[1], device=inputs.device)
        hidden = self.tokens(inputs) + self.positions(where)
        for block in self.blocks:
            hidden = block(hidden)
        return functional.cross_entropy(self.head(hidden).flatten(0, 1), targets.flatten())


def build(shape: ModelShape, mesh: DeviceMesh, device: torch.device, seed: int) -> Transformer:
    """Return the sharded model; every rank and attempt starts from the same weights."""
    torch.manual_seed(seed)
    model = Transformer(shape).to(device)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model
