"""All kinds of logs that are known by their lines, by name."""

from headway.importing import (
    errors,
    goodput_events,
    kernel,
    launchers,
    lightning,
    maxtext,
    megatron,
    nccl,
    nvrx_benchmark,
    own_trainers,
    torchtitan,
    transformers,
)
from headway.importing.names import AUTO
from headway.importing.rules import Format

_DOCUMENTS = (
    Format(name="kubernetes", rules=()),
    Format(name="events", rules=()),
)
FORMATS = {
    one.name: one
    for one in (
        megatron.FORMAT,
        torchtitan.FORMAT,
        transformers.FORMAT,
        lightning.FORMAT,
        lightning.NEMO,
        maxtext.FORMAT,
        own_trainers.MM,
        own_trainers.M4,
        goodput_events.FORMAT,
        nvrx_benchmark.FORMAT,
        launchers.TORCHRUN,
        launchers.NVRX,
        nccl.FORMAT,
        launchers.SLURM,
        kernel.FORMAT,
        errors.FORMAT,
        *_DOCUMENTS,
    )
}
"""Formats by name: training programs first, then what stands beside any of them."""
BESIDE = tuple(one for one in FORMATS.values() if not one.is_training)
"""Formats of what stands beside a training program's own lines."""


def rules_for(name: str) -> tuple[Format, ...]:
    """Return the formats to read a log with: one training program's and all that go with it.

    Raises:
        KeyError: an unknown name.
    """
    if name == AUTO:
        return tuple(FORMATS.values())
    chosen = FORMATS[name]
    below = [FORMATS[one] for one in chosen.stands_on]
    return (chosen, *below, *(one for one in BESIDE if one is not chosen))
