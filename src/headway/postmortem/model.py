"""What a post-mortem says: values only; how they are found stands in the siblings.

Times are UTC ns, durations ns; `None` means unknown or not yet.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the timeline: when, who says so, about whom, and what.

    What several told alike is one line, of so many records; `until` is the last of them, or where
    it `spans` time its own end. `record` is where the first is stored, as producer and sequence.
    `evidence` marks what the verdict looked at, `decides` what it rests on, `echo` what a dead peer
    looks like from outside.
    """

    time: int
    source: str
    words: str
    about: str | None = None
    until: int | None = None
    record: str | None = None
    count: int = 1
    spans: bool = False
    evidence: bool = False
    echo: bool = False
    first_fault: bool = False
    decides: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The cause and how it was found: by a rule, or by a person who corrected the rule."""

    cause: str
    original_cause: str
    rule: str
    signature: str | None
    false_alarm: bool
    corrected_by: str | None
    corrected_at: int | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the incident cost; `share` is that of the run's time so far."""

    rollback_steps: int | None
    rollback_ns: int | None
    lost_ns: int
    lost_gpu_ns: int
    share: float | None
    gpus: int | None
    money: float | None
    currency: str | None
    per_gpu_hour: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTime:
    """The time of one phase of the incident."""

    phase: str
    ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """Another incident, and what it has in common with this one."""

    incident: str
    run: str
    run_name: str
    opened: int
    cause: str
    headline: str
    shares: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """What is on record of the suspected node, over all runs; `rate` per 1,000 node-days."""

    node: str
    failures: int
    node_days: float
    rate: float | None
    last_failure: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRecord:
    """What is on record of the suspected GPU, over all runs."""

    device: str
    product: str | None
    faults: int
    names: tuple[str, ...]
    incidents: int
    repeats_in_week: int | None
    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """Whom the evidence accuses, by which rule, and what is on record of them.

    `earlier` are incidents of any run that had suspected the same GPU, node or, in this run, rank.
    """

    rank: int | None
    node: str | None
    gpu: str | None
    rule: str | None
    repeats: tuple[str, ...]
    node_record: NodeRecord | None
    gpu_record: GpuRecord | None
    earlier: tuple[Other, ...]
    num_earlier: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One attempt to recover; `cause` is why it broke, None where it did not."""

    number: int
    layer: str
    began: int
    outcome: str
    resumed: int | None
    checkpoint: str | None
    cause: str | None
    until_then_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The checkpoint from which training went on.

    `age_ns` is that of its durability when the incident opened; negative where it came later, as
    that of a save on the way out does.
    """

    checkpoint: str
    step: int
    state: str | None
    durable_since: int | None
    age_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What brought the training back, and whether it is the same training."""

    outcome: str
    layer: str | None
    tries: tuple[Try, ...]
    num_tries: int
    restored: Restored | None
    valid: str
    valid_reason: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A setting that differs between two attempts, as people read it."""

    attempt: int
    before_attempt: int
    setting: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Configurations:
    """What changed in the settings from one attempt to the next.

    `broken` is the number of the attempt that broke, and `last` that of the newest one of the
    incident; each was compared with the one before it, of which attempt 1 has none. `told` says
    whether any recorded its settings.
    """

    broken: int | None
    last: int | None
    differences: tuple[Difference, ...]
    num_differences: int
    told: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One notice of an alert: whom it was sent, what came of it, who took it."""

    time: int
    receiver: str
    status: str
    headline: str
    why: str
    state: str
    answer: str | None
    acknowledged_by: str | None
    acknowledged_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmortem:
    """The whole document; `attempt` is the number of the one that broke.

    `alerts` is None where no alert book could be read. Of long lists only some are here; their
    `num_` fields say how many there are.
    """

    incident: str
    number: int
    run: str
    run_name: str
    team: str | None
    as_of: int
    state: str
    headline: str
    labels: tuple[str, ...]
    attempt: int | None
    opened: int
    recovered: int | None
    caught_up: int | None
    closed: int | None
    acknowledged_by: str | None
    acknowledged_at: int | None
    verdict: Verdict
    timeline: tuple[Line, ...]
    num_lines: int
    cost: Cost
    phases: tuple[PhaseTime, ...]
    suspect: Suspect
    recovery: Recovery
    similar: tuple[Other, ...]
    num_similar: int
    configuration: Configurations
    alerts: tuple[Told, ...] | None
    num_alerts: int
    gaps: tuple[str, ...]
    questions: tuple[str, ...]
