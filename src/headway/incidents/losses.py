"""What each GPU cost a run: the faults it had, and the steps and the time that they took."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from headway.gpu_faults.history import SEVERE
from headway.incidents.gpu_evidence import AFTER, BEFORE, Finding, GpuRecord, finding_of
from headway.incidents.model import Incident
from headway.incidents.reading import Reading
from headway.ledger import Ledger
from headway.ledger.ledger import by_category

UNITED = 300 * 10**9
"""Records of one GPU that follow each other within this, in ns, tell of one fault.

The driver reports a GPU that fell off the bus twice, and NVML sees it once more.
"""
LOST = ("rolled_back", "checkpoint_load", "startup", "stalled", "restart", "down")
"""Categories whose time an incident costs until it has recovered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What incidents cost: steps rolled back, time in ns, and that of all GPUs held in GPU-ns."""

    steps: int = 0
    time: int = 0
    gpu_time: int = 0

    def __add__(self, other: "Loss") -> "Loss":
        """Return the sum."""
        return Loss(
            steps=self.steps + other.steps,
            time=self.time + other.time,
            gpu_time=self.gpu_time + other.gpu_time,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLoss:
    """One GPU of a run: its faults by name and class, the incidents it is to blame for, their cost.

    `device` is None where a record accuses a GPU of the node without naming it.
    """

    node: str | None
    device: str | None
    faults: int = 0
    classes: Mapping[str, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()
    loss: Loss = field(default_factory=Loss)


def loss_of(ledger: Ledger, incident: Incident) -> Loss:
    """Return what an incident has cost so far.

    The time is that of the steps rolled back and, from the fault until the first step after it,
    that of the ledger's categories in which nothing is gained. Each stretch is weighted by the
    GPUs held in it.
    """
    end = ledger.closed_at if incident.recovered is None else incident.recovered
    changes = (time for time in ledger.book.held.times if incident.opened < time < end)
    time = gpu_time = 0
    for begin, until in pairwise([incident.opened, *changes, end]):
        amounts = by_category(ledger.amounts(begin, until))
        spent = sum(amounts[category] for category in LOST)
        time += spent
        gpu_time += spent * ledger.gpus_at(begin)
    undone = incident.rollback or 0
    return Loss(
        steps=incident.rollback_steps or 0,
        time=time + undone,
        gpu_time=gpu_time + undone * ledger.gpus_at(incident.opened),
    )


def gpu_losses(ledger: Ledger, known: Sequence[Incident]) -> list[GpuLoss]:
    """Return every GPU of the run that had a fault or is to blame for an incident, worst first."""
    charged: dict[tuple[str | None, str | None], list[Incident]] = defaultdict(list)
    for incident in known:
        if incident.cause == "gpu_fault":
            charged[incident.suspect_node, incident.suspect_gpu].append(incident)
    seen: dict[tuple[str | None, str | None], list[Finding]] = defaultdict(list)
    for one in _findings(ledger):
        if one.classification != "consequence":
            seen[one.fact.envelope.node, one.gpu].append(one)
    found = []
    for key in {**charged, **seen}:
        losses = (loss_of(ledger, incident) for incident in charged[key])
        found.append(
            GpuLoss(
                node=key[0],
                device=key[1],
                faults=len(fault_times(seen[key])),
                classes=by_class(seen[key]),
                names=tuple(sorted({one.name for one in seen[key]})),
                incidents=tuple(incident.incident for incident in charged[key]),
                loss=sum(losses, Loss()),
            )
        )
    return sorted(
        found, key=lambda one: (-one.loss.gpu_time, -one.faults, str(one.node), str(one.device))
    )


def severe_faults(ledger: Ledger) -> dict[str, list[int]]:
    """Return when faults that take a GPU of the run out of service began, in UTC ns, by node."""
    seen: dict[tuple[str | None, str | None], list[Finding]] = defaultdict(list)
    for one in _findings(ledger):
        seen[one.fact.envelope.node, one.gpu].append(one)
    found: dict[str, list[int]] = defaultdict(list)
    for (node, _), findings in seen.items():
        if node is not None:
            found[node] += fault_times(findings)
    return {node: sorted(times) for node, times in found.items() if times}


def united(times: Iterable[int]) -> list[int]:
    """Return when each fault began of which several records, at times in ns, may tell."""
    begun: list[int] = []
    last = None
    for time in sorted(times):
        if last is None or time - last > UNITED:
            begun.append(time)
        last = time
    return begun


def fault_times(findings: Iterable[Finding]) -> list[int]:
    """Return when each fault began that says that its GPU is broken, at times in ns."""
    return united(one.fact.time for one in findings if one.classification in SEVERE)


def by_class(findings: Iterable[Finding]) -> dict[str, int]:
    """Return the faults of a GPU by class; records that follow each other are one."""
    times: dict[str, list[int]] = defaultdict(list)
    for one in findings:
        times[one.classification].append(one.fact.time)
    return {name: len(united(told)) for name, told in sorted(times.items())}


def _findings(ledger: Ledger) -> list[Finding]:
    """Return the GPU faults on GPUs of the attempt that ran, or had run last, at their time."""
    told = chain(ledger.book.of_nodes, ledger.book.facts)
    attempts = ledger.book.attempts
    if not attempts or not any(isinstance(fact.envelope.event, GpuRecord) for fact in told):
        return []
    reading = Reading(ledger)
    begins = [attempt.begin for attempt in attempts]
    found = []
    for fact in reading.of_machines(ledger.start - BEFORE, ledger.closed_at + AFTER):
        record = fact.envelope.event
        attempt = attempts[max(bisect_right(begins, fact.time) - 1, 0)]
        holders = reading.holders.on(attempt, fact.envelope.node)
        if isinstance(record, GpuRecord) and holders:
            one = finding_of(reading.inventory, holders, fact, record)
            if one.place.ours:
                found.append(one)
    return found
