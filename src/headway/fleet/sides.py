"""Whose an incident is: the machines', the software's, the scheduler's, or undecided.

Decided by the cause alone. A hang, a collective that timed out and a process that was killed may be
either, so they stay undecided until somebody corrects the cause.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side with its title, what it means, and the causes that are its."""

    name: str
    title: str
    description: str
    causes: tuple[str, ...]


SIDES: Mapping[str, Side] = {
    side.name: side
    for side in (
        Side(
            name="machines",
            title="Machines",
            description="GPUs, nodes, network or storage broke.",
            causes=("gpu_fault", "node_lost", "network", "storage"),
        ),
        Side(
            name="software",
            title="Software",
            description="The program raised, ran out of memory or diverged.",
            causes=("exception", "gpu_oom", "host_oom", "numerical"),
        ),
        Side(
            name="scheduling",
            title="Scheduler and people",
            description="Preempted, out of time, or stopped by somebody: no failure.",
            causes=("preemption", "time_limit", "operator"),
        ),
        Side(
            name="undecided",
            title="Undecided",
            description="The evidence fits machines as well as software.",
            causes=("collective_timeout", "hang", "killed", "startup_failure", "unknown"),
        ),
    )
}
"""Every side, in the order in which people read them."""

_OF_CAUSE = {cause: side.name for side in SIDES.values() for cause in side.causes}


def side_of(cause: str) -> str:
    """Return the side of a cause.

    Raises:
        KeyError: no declared cause.
    """
    return _OF_CAUSE[cause]


def is_failure(cause: str) -> bool:
    """Return whether an incident of this cause is a failure; being stopped is none."""
    return side_of(cause) != "scheduling"
