"""Planned faults: a seeded schedule of them, or a single one at a certain moment.

The schedule is the published one of the resilient-training benchmarks: the same seed gives the
same steps and ranks at any time and place. A fault at n strikes after step n is completed.
Standard library only.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

FAULT_TYPES = ("exception", "hang", "sigkill")
"""What a schedule can draw."""
STAGED = ("preemption", "node_lost", "oom")
"""What a process cannot do to itself: it says that it is time, and waits for it."""
BREAKS_SAVES = ("checkpoint_fail", "checkpoint_torn")
"""What breaks a checkpoint and no rank: its write fails, or it is damaged once it is complete."""
SINGLE_FAULTS = (*FAULT_TYPES, *STAGED, *BREAKS_SAVES)
"""What can be asked for by itself."""
MEMORY = "faults"
"""Folder in that of the training in which it is remembered what has struck."""
MOMENTS = ("startup", "load", "step", "save", "evaluation")
"""When a single fault can strike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """One fault: it strikes `rank` at the first moment of its kind once `step` is completed."""

    step: int
    rank: int
    type: str
    at: str = "step"


def schedule(
    *,
    seed: int,
    num_faults: int,
    after_step: int,
    max_steps: int,
    world_size: int,
    types: Sequence[str] = ("exception",),
    weights: Sequence[float] | None = None,
) -> tuple[PlannedFault, ...]:
    """Return the faults of a run in the order of their steps.

    Steps are drawn from `after_step` + 1 to `max_steps` without repetition. Rank 0 is never
    struck: it holds the stores, and in the benchmarks its loss ends the run.

    Raises:
        ValueError: numbers that leave no room for the faults, or an unknown type.
    """
    if num_faults == 0:
        return ()
    room = max(max_steps - after_step, 0)
    if not 0 < num_faults <= room:
        raise ValueError(
            f"{num_faults} faults do not fit into steps {after_step + 1} to {max_steps}; "
            f"ask for at most {room}"
        )
    if world_size < 2:
        raise ValueError(
            f"faults need a rank other than 0, but the world size is {world_size}; "
            "start at least 2 ranks or ask for 0 faults"
        )
    if unknown := [name for name in types if name not in FAULT_TYPES]:
        raise ValueError(f"unknown fault type {unknown[0]!r}; known: {', '.join(FAULT_TYPES)}")
    if not types or (weights is not None and len(weights) != len(types)):
        raise ValueError(f"{len(types)} fault types with {len(weights or ())} weights")
    generator = random.Random(seed)  # noqa: S311  # reproducible on purpose
    steps = sorted(generator.sample(range(after_step + 1, max_steps + 1), num_faults))
    return tuple(
        PlannedFault(
            step=step,
            rank=generator.randint(1, world_size - 1),
            type=generator.choices(types, weights)[0],
        )
        for step in steps
    )


def single(
    *,
    kind: str,
    at: str | None,
    rank: int | None,
    step: int | None,
    max_steps: int,
    world_size: int,
    checkpoint_every: int,
    evaluate_every: int,
) -> PlannedFault:
    """Return the one fault that was asked for.

    By default it strikes the last rank, at the start or the first look for a checkpoint, else
    halfway between the first checkpoint and the second, or at the first save or evaluation after
    that. At a load, `step` asks for a checkpoint of at least so many steps.

    Raises:
        ValueError: what can never strike.
    """
    if kind not in SINGLE_FAULTS:
        raise ValueError(f"unknown fault {kind!r}; known: {', '.join(SINGLE_FAULTS)}")
    at = at or ("save" if kind in BREAKS_SAVES else "step")
    if at not in MOMENTS:
        raise ValueError(f"a fault cannot strike at {at!r}; known: {', '.join(MOMENTS)}")
    if kind in BREAKS_SAVES and at != "save":
        raise ValueError(f"{kind} strikes at a save, not at {at}; leave --fault-at out")
    if at == "evaluation" and not evaluate_every:
        raise ValueError("a fault at an evaluation needs --evaluate-every of more than 0")
    rank = world_size - 1 if rank is None else rank
    if not 0 <= rank < world_size:
        raise ValueError(f"there is no rank {rank} to strike; choose one of 0 to {world_size - 1}")
    if step is None:
        halfway = min(checkpoint_every * 3 // 2, max_steps - 1)
        step = 0 if at in ("startup", "load") else halfway
    if not 0 <= step < max_steps or (at == "startup" and step):
        raise ValueError(
            f"a fault cannot strike at {at} after step {step} of {max_steps}; "
            f"choose {'0' if at == 'startup' else f'0 to {max_steps - 1}'}"
        )
    return PlannedFault(step=step, rank=rank, type=kind, at=at)
