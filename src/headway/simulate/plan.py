"""What a simulated run is like: its machines, its pace, what breaks it and how it recovers.

All times are in nanoseconds. A plan and a seed determine every event.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.events import CAUSES, LAYERS, STOP_REASONS

SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
MONTH = 30 * DAY

SYMPTOMS = (
    "exception",
    "numerical",
    "gpu_oom",
    "kill",
    "host_oom",
    "hang",
    "collective_timeout",
    "health_check",
    "lost_node",
    "network",
    "storage",
    "stop",
)
"""How a trouble shows itself; `headway.simulate.evidence` says in which events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One thing that interrupts training, and the layer that recovers from it.

    `label` is the word of whoever counted it, `cause` Headway's. `rate` counts strikes per 1000
    node-days. `xid` is what the driver says about it. A `stop` is announced with `reason`.
    `detection` is the time until it is noticed, where it is not that of the layer; `by_person` says
    that nothing but a person notices it.
    """

    label: str
    cause: str
    symptom: str
    layer: str = "launcher"
    rate: float = 0.0
    xid: int | None = None
    reason: str | None = None
    detection: int | None = None
    by_person: bool = False

    def __post_init__(self) -> None:
        """Check the words.

        Raises:
            ValueError: a word outside its list.
        """
        _known("cause", self.cause, CAUSES)
        _known("symptom", self.symptom, SYMPTOMS)
        _known("layer", self.layer, LAYERS)
        if (self.symptom == "stop") != (self.reason is not None):
            raise ValueError(f"{self.label!r}: a stop needs a reason, nothing else has one")
        if self.reason is not None:
            _known("reason", self.reason, STOP_REASONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """A trouble at a time of the run in ns, or right after a step was completed once.

    A strike that falls due while nobody trains waits for the first step after that, unless it is
    one `in_startup`. Without a rank one other than 0 is drawn. One that stays `until` a time
    strikes each attempt again, `after` its begin. With `away` only a person starts the run again,
    so much later. It may take another `queue` than the layer's. The load after it does not find the
    newest `forgets` checkpoints, and the group has `nodes` nodes from then on.
    """

    trouble: str
    at: int | None = None
    after_step: int | None = None
    rank: int | None = None
    in_startup: bool = False
    until: int | None = None
    after: int = 0
    away: int = 0
    queue: int | None = None
    forgets: int = 0
    nodes: int | None = None

    def __post_init__(self) -> None:
        """Check that the moment is given once.

        Raises:
            ValueError: both a time and a step, or neither.
        """
        if (self.at is None) == (self.after_step is None):
            raise ValueError(f"strike of {self.trouble!r}: give either at or after_step")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """How long one layer takes for each part of a recovery.

    `detection` runs from the strike to the begin of the teardown; in `queue` no GPU is held; in
    `wait` GPUs are held and nobody starts anything. `failed_starts` attempts fail before the one
    that trains, each after `start`; `failed_start_chance` lets any start fail.
    """

    detection: int = 0
    teardown: int = 0
    queue: int = 0
    wait: int = 0
    rendezvous: int = 0
    start: int = 0
    load: int = 0
    failed_starts: int = 0
    failed_start_chance: float = 0.0

    def __post_init__(self) -> None:
        """Check the chance.

        Raises:
            ValueError: a start that always fails.
        """
        if not 0 <= self.failed_start_chance < 1:
            raise ValueError(
                f"failed_start_chance must be from 0 to below 1, got {self.failed_start_chance!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """A rank whose batches come late by `excess` per step over a range of steps."""

    rank: int
    first_step: int
    last_step: int
    excess: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How long background writes take from `begin` to before `end`; None: they fail."""

    begin: int
    end: int
    background: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run. It ends with `target_step`, or with the first step completed after `duration`.

    `jitter` is the relative spread of a step's time (lognormal, its mean kept), `delay_jitter` that
    of every part of a recovery. A save blocks training for `blocking`; the checkpoint is durable
    `background` later, and one background write runs at a time. `torn_chance` lets a checkpoint
    prove unreadable when it is loaded. An elastic group goes on without a lost node, whose
    replacement joins at the first restart after `repair`. `steps_per_record` is the length of a
    step summary; None records each step in full. `exit_save` lets a run that is told to stop save
    first. `heartbeat` is the time between two signs of life of rank 0. `limits` are the restarts
    that each layer allows before an outer one has to take over, or else a person, after `absence`;
    `timeouts` are told and change nothing.
    """

    run_name: str = "simulated"
    nodes: int = 2
    gpus_per_node: int = 8
    spare_nodes: int = 0
    target_step: int | None = None
    duration: int | None = None
    startup: int = 0
    step_time: int = SECOND
    jitter: float = 0.0
    delay_jitter: float = 0.0
    data_wait: int = 0
    checkpoint_interval: int = 500
    blocking: int = 0
    background: int = 0
    torn_chance: float = 0.0
    exit_save: bool = True
    elastic: bool = False
    repair: int = DAY
    steps_per_record: int | None = 100
    heartbeat: int | None = None
    troubles: tuple[Trouble, ...] = ()
    strikes: tuple[Strike, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    writings: tuple[Writing, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    absence: int = HOUR
    timeouts: Mapping[str, int] = field(default_factory=dict)
    recovery: Mapping[str, Recovery] = field(
        default_factory=lambda: {layer: Recovery() for layer in LAYERS}
    )

    def __post_init__(self) -> None:
        """Check what the parts say about each other.

        Raises:
            ValueError: a run without an end, a size below 1, or a trouble that nobody declared.
        """
        if self.target_step is None and self.duration is None:
            raise ValueError("a plan needs target_step or duration, or it never ends")
        for name in ("nodes", "gpus_per_node", "step_time", "checkpoint_interval"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)!r}")
        labels = [trouble.label for trouble in self.troubles]
        for strike in self.strikes:
            _known("trouble", strike.trouble, labels)
        for trouble in self.troubles:
            _known("recovery of layer", trouble.layer, list(self.recovery))

    def trouble(self, label: str) -> Trouble:
        """Return a declared trouble by its label."""
        return next(trouble for trouble in self.troubles if trouble.label == label)


def _known(what: str, value: str, choices: tuple[str, ...] | list[str]) -> None:
    if value not in choices:
        raise ValueError(f"unknown {what} {value!r}; known: {', '.join(choices)}")
