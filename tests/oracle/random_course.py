"""What a random run consists of while it is being made up, shared by the parts that make it up."""

from dataclasses import dataclass, field

from headway.events import Fault
from headway.step_blocks import Step
from oracle.chance import Chance
from oracle.scenario import Scenario


@dataclass
class Save:
    """A checkpoint that a run may load later."""

    checkpoint: str
    step: int
    readable: bool
    finalized: int | None


@dataclass
class Trial:
    """One attempt while it is being made up; `cursor` is its time."""

    name: str
    layer: str
    ranks: list[int]
    cursor: int
    detail: dict[int, str]
    behind: dict[int, int] = field(default_factory=dict)
    pending: dict[int, list[tuple[int, Step]]] = field(default_factory=dict)
    last: int = 0


class Course(Chance):
    """The state of a made-up run."""

    def __init__(self, seed: int, without: frozenset[str]) -> None:
        super().__init__(seed, without)
        self.run = Scenario(f"random-{seed}", unit=1)
        self.duration = self.time(1, 12)
        self.saves: list[Save] = []
        self.completed = 0
        self.highest = 0
        self.now = 0
        self.bound: list[str] = []
        self.over = False
        self.announced = False
        self.next_layer = "scheduler"

    def fault(self, step: int) -> Fault:
        kind = self.pick(
            "exception",
            "exception",
            "exception",
            "exception",
            "gpu_oom",
            "numerical",
            "host_oom",
            "collective_timeout",
            "heartbeat_timeout",
            "section_timeout",
            "hang",
            "signal",
            "lost_rank",
            "lost_node",
            "network",
            "storage",
            "unknown",
        )
        watchdog = kind in ("collective_timeout", "heartbeat_timeout", "section_timeout", "hang")
        ran_for = self.time(0, 300) if watchdog and self.chance(0.8) else None
        return Fault(
            kind=kind,
            ran_for=ran_for,
            step=step if self.chance(0.3) else None,
            phase=self.pick("step", "data_wait", "evaluation", None, None),
        )
