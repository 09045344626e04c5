"""The history of a node and of its GPUs over all runs: faults, incidents, what they cost.

A node failed when one of its GPUs had a fault that asks for a reset, a reboot or a replacement, or
when an incident is blamed on it; what follows within five minutes is the same failure. Its rate
counts the failures while a run was there, over the time that runs were there.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from headway.events import GpuPresent, GpuXid, Health
from headway.fleet.cordon import cordon_commands
from headway.fleet.rates import Rate, rate_of
from headway.fleet.stays import Charge, Stay, Stretch, joined
from headway.gpu_faults import history
from headway.incidents import Loss
from headway.incidents.gpu_evidence import AFTER, BEFORE, Finding, GpuRecord, finding_of
from headway.incidents.gpu_names import uuid_of
from headway.incidents.inventory import Inventory
from headway.incidents.losses import by_class, fault_times, united
from headway.ledger.intake import Stamped
from headway.wording import counted

_OF_MACHINES = ("gpu_fault", "node_lost")
"""Causes of incidents that are failures of the machine they are blamed on."""
REPEATED = 2
"""Failures that make a node a repeat offender."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The newest result of one health check of a node, and when it was told (UTC ns).

    A check tells again only what changed, so that the newest result still holds.
    """

    check: str
    state: str
    detail: str | None
    told: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSeen:
    """One kind of GPU fault on one GPU of a node, of one class and by one policy.

    `told` are its records, each with its time in UTC ns and how many lines it stands for; `gpu` is
    None where no record names it. `code` is the Xid's number.
    """

    name: str
    code: int | None
    classification: str
    policy: str
    gpu: str | None
    told: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHistory:
    """One GPU of a node: its faults, by class and name, and the incidents it is to blame for.

    `advice` is what its faults of the past say together, which no single one does.
    """

    device: str
    address: str | None = None
    product: str | None = None
    faults: int = 0
    classes: Mapping[str, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()
    loss: Loss = field(default_factory=Loss)
    last_fault: int | None = None
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHistory:
    """One node: how often it failed and at which rate, what that cost, and each of its GPUs.

    `failures` are all, the rate counts those while a run was there; `failure_times` and `presence`,
    when they were and when runs were there, are UTC ns.
    """

    node: str
    runs: tuple[str, ...]
    scheduler: str | None
    failures: int
    rate: Rate
    causes: Mapping[str, int]
    incidents: tuple[str, ...]
    loss: Loss
    last_failure: int | None
    gpus: tuple[GpuHistory, ...]
    failure_times: tuple[int, ...] = ()
    presence: tuple[Stretch, ...] = ()
    faults: tuple[FaultSeen, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def repeats(self) -> bool:
        """Whether it failed more than once."""
        return self.failures >= REPEATED

    @property
    def cordon(self) -> Sequence[str]:
        """The command that keeps new work off it, one for each scheduler if none is known."""
        names = sorted({name for gpu in self.gpus if gpu.faults for name in gpu.names})
        what = f" ({', '.join(names)})" if names else ""
        reason = f"headway: {counted(self.failures, 'failure')}{what}"
        return cordon_commands(self.node, self.scheduler, reason)


def node_history(
    node: str, events: Sequence[Stamped], stays: Iterable[Stay], now: int
) -> NodeHistory:
    """Return the history of a node at `now` (ns) from its own events and the runs there."""
    there = [stay for stay in stays if node in stay.nodes]
    presence = joined(stretch for stay in there for stretch in stay.nodes[node])
    charges = [charge for stay in there for charge in stay.charges if charge.node == node]
    told = {key: uuid for stay in there for key, uuid in stay.devices.items()}
    findings = [
        replace(one, gpu=told.get((node, one.gpu or ""), one.gpu)) for one in _findings(events)
    ]
    times = [one.fact.time for one in findings if one.classification in history.SEVERE]
    times += [charge.opened for charge in charges if charge.cause in _OF_MACHINES]
    failures = united(times)
    in_use = sum(_during(presence, time) for time in failures)
    return NodeHistory(
        node=node,
        runs=tuple(stay.run for stay in there),
        scheduler=next((stay.scheduler for stay in there if stay.scheduler is not None), None),
        failures=len(failures),
        rate=rate_of(in_use, sum(stretch.end - stretch.start for stretch in presence)),
        causes=dict(sorted(Counter(charge.cause for charge in charges).items())),
        incidents=tuple(charge.incident for charge in charges),
        loss=sum((charge.loss for charge in charges), Loss()),
        last_failure=failures[-1] if failures else None,
        gpus=_gpus(events, findings, charges, now),
        failure_times=tuple(failures),
        presence=tuple(presence),
        faults=_faults_seen(findings),
        checks=_checks(events),
    )


def worst_first(histories: Iterable[NodeHistory]) -> list[NodeHistory]:
    """Return nodes by the rate that they surely have, then by what they cost."""
    return sorted(
        histories,
        key=lambda one: (
            not one.repeats,
            -(one.rate.low or 0.0),
            -one.failures,
            -one.loss.gpu_time,
            one.node,
        ),
    )


def _findings(events: Sequence[Stamped]) -> list[Finding]:
    inventory = Inventory(events)
    return [
        finding_of(inventory, (), fact, fact.envelope.event)
        for fact in events
        if isinstance(fact.envelope.event, GpuRecord)
    ]


def _faults_seen(findings: Iterable[Finding]) -> tuple[FaultSeen, ...]:
    found: dict[tuple[str, str, str, str | None], list[Finding]] = defaultdict(list)
    for one in findings:
        found[one.name, one.classification, one.policy, one.gpu].append(one)
    return tuple(
        FaultSeen(
            name=name,
            code=own[0].record.code if isinstance(own[0].record, GpuXid) else None,
            classification=classification,
            policy=policy,
            gpu=gpu,
            told=tuple((one.fact.time, one.times) for one in own),
        )
        for (name, classification, policy, gpu), own in found.items()
    )


def _checks(events: Sequence[Stamped]) -> tuple[Check, ...]:
    """Return the newest result of each check; `events` are in order of time."""
    found: dict[str, Check] = {}
    for fact in events:
        record = fact.envelope.event
        if isinstance(record, Health):
            found[record.check] = Check(
                check=record.check, state=record.state, detail=record.detail, told=fact.time
            )
    return tuple(found[name] for name in sorted(found))


def _during(presence: Sequence[Stretch], time: int) -> bool:
    """Whether a failure fell into a run, or so close to one that an incident may blame it."""
    return any(one.start - BEFORE <= time <= one.end + AFTER for one in presence)


def _gpus(
    events: Sequence[Stamped],
    findings: Sequence[Finding],
    charges: Sequence[Charge],
    now: int,
) -> tuple[GpuHistory, ...]:
    """Return every GPU of a node that is listed, had a fault or is to blame for an incident."""
    seen: dict[str, list[Finding]] = defaultdict(list)
    for one in findings:
        if one.gpu is not None and one.classification != "consequence":
            seen[one.gpu].append(one)
    blamed: dict[str, list[Charge]] = defaultdict(list)
    for charge in charges:
        if charge.gpu is not None:
            blamed[charge.gpu].append(charge)
    listed: dict[str, GpuPresent] = {}
    for fact in events:
        record = fact.envelope.event
        if isinstance(record, GpuPresent):
            listed[uuid_of(record.device) or record.device] = record
    advice: dict[str, list[str]] = defaultdict(list)
    for said in history.findings(map(_past, chain.from_iterable(seen.values())), now):
        advice[said.gpu].append(said.advice)
    found = []
    for device in {**listed, **blamed, **seen}:
        begun = fault_times(seen[device])
        present = listed.get(device)
        found.append(
            GpuHistory(
                device=device,
                address=None if present is None else present.pci_address,
                product=None if present is None else present.product,
                faults=len(begun),
                classes=by_class(seen[device]),
                names=tuple(sorted({one.name for one in seen[device]})),
                incidents=tuple(charge.incident for charge in blamed[device]),
                loss=sum((charge.loss for charge in blamed[device]), Loss()),
                last_fault=begun[-1] if begun else None,
                advice=tuple(advice[device]),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.faults, -one.loss.gpu_time, one.device)))


def _past(one: Finding) -> history.PastFault:
    judged = replace(one.record, classification=one.classification, policy=one.policy)
    boot = one.fact.envelope.boot_id
    return history.PastFault(time=one.fact.time, gpu=one.gpu or "", fault=judged, boot_id=boot)
