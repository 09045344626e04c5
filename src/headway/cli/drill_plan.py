"""Which drills there are: recovery layers, faults, where they strike, and what means nothing.

Every drill trains the same few steps on two ranks. One fault strikes rank 1, because rank 0 serves
the store in which the ranks meet: its loss ends the run under any layer inside the job.
"""

from dataclasses import dataclass

LAYERS = ("in_process", "launcher", "both", "scheduler", "torchrun")
FAULTS = (
    "none",
    "exception",
    "sigkill",
    "oom",
    "hang",
    "node_lost",
    "checkpoint_fail",
    "checkpoint_torn",
    "preemption",
)
PLACES = ("startup", "load", "step", "save", "evaluation")
SAVES = ("sync", "async")

STEPS = 40
CHECKPOINT_EVERY = 10
EVALUATE_EVERY = 7
"""Never at the step of a checkpoint while a fault is due, so that one thing follows the other."""
FAULT_RANK = 1
RANKS = 2
_FIRST_FAULT, _FAULT_STEPS = 23, 5
"""Faults strike between two checkpoints, beyond the second and before the next evaluation."""

_OF_A_SAVE = ("checkpoint_fail", "checkpoint_torn")
_SAME_EVERYWHERE = {
    "none": "nothing strikes, so the place means nothing",
    "oom": "the kernel kills a rank in the same way wherever it is: see sigkill",
    "node_lost": "a node takes its ranks along in the same way wherever they are",
    "preemption": "a notice is followed after the step that is under way, wherever it comes",
}
_UNWATCHED = {
    "startup": "nobody watches a rank that has not joined the group; what ends it is the "
    "rendezvous' own timeout of minutes",
    "load": "nobody watches a rank before its first step but the collective's timeout: see step",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """One drill."""

    layer: str
    fault: str
    at: str
    save: str
    seed: int
    kernel_lines: tuple[str, ...] = ()
    """What the kernel's log of the struck rank's node says."""
    kernel_lines_after: float = 0.0
    """When it says so by its own stamps, in seconds after the fault."""

    @property
    def fault_step(self) -> int:
        """Steps after which the fault is due: at `step` at once, elsewhere at the next chance."""
        return _FIRST_FAULT + self.seed % _FAULT_STEPS

    @property
    def restarts_in_process(self) -> bool:
        """Whether the training restarts inside its processes."""
        return self.layer in ("in_process", "both")

    @property
    def num_nodes(self) -> int:
        """Nodes of the drill: what one process starts and ends together is one."""
        one = self.layer in ("launcher", "torchrun") and self.fault != "node_lost"
        return 1 if one else 2


def usual_place(fault: str) -> str:
    """Return where a fault strikes unless somebody says otherwise."""
    return "save" if fault in _OF_A_SAVE else "step"


def left_out(layer: str, fault: str, at: str) -> str | None:
    """Return why a drill means nothing; None if it does."""
    if fault == "preemption" and layer != "scheduler":
        return (
            "the notice reaches whoever started the ranks, too, and ends it: only a scheduler "
            "starts the job again"
        )
    if at == usual_place(fault):
        return None
    if fault in _OF_A_SAVE:
        return "it is a save that goes wrong"
    if fault in _SAME_EVERYWHERE:
        return _SAME_EVERYWHERE[fault]
    if fault == "hang" and at in _UNWATCHED:
        return _UNWATCHED[at]
    if fault == "sigkill" and at in _UNWATCHED and layer in ("in_process", "both"):
        return (
            "the rank dies before the group has formed in the wrapper, which then has nobody to "
            "go on without"
        )
    return None
