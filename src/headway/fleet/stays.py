"""Where a run was and what it blames on its machines: what it adds to the histories of nodes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headway.events import Allocation, AttemptStarted, RankDevice
from headway.incidents import Loss
from headway.incidents.gpu_names import address_of, uuid_of
from headway.ledger import Ledger

_KUBERNETES = ("kubernetes", "k8s")


class Stretch(NamedTuple):
    """From when to when, in UTC ns."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """An incident that is blamed on a node, and on one of its GPUs if that broke."""

    node: str
    gpu: str | None
    incident: str
    cause: str
    opened: int
    loss: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """One run on its nodes; `live` says that it is still there.

    `devices` are the UUIDs of its ranks' GPUs by node and PCI address, as the ranks told them.
    """

    run: str
    run_name: str
    live: bool
    scheduler: str | None
    nodes: Mapping[str, Sequence[Stretch]]
    devices: Mapping[tuple[str | None, str], str]
    charges: Sequence[Charge]


def stay_of(ledger: Ledger, report: Mapping[str, Any]) -> Stay:
    """Return the stay of a run from its ledger and its report."""
    stretches: dict[str, list[Stretch]] = defaultdict(list)
    for number, attempt in enumerate(ledger.book.attempts):
        end = ledger.closed_at if ledger.is_alive(number) else attempt.end
        for node in {log.node for log in attempt.ranks.values() if log.node is not None}:
            stretches[node].append(Stretch(attempt.begin, max(end, attempt.begin)))
    return Stay(
        run=ledger.run,
        run_name=report["run_name"],
        live=ledger.provisional,
        scheduler=_scheduler(ledger),
        nodes={node: joined(found) for node, found in sorted(stretches.items())},
        devices=_devices(ledger),
        charges=[_charge(one) for one in report["incidents"] if one["suspect_node"] is not None],
    )


def _devices(ledger: Ledger) -> dict[tuple[str | None, str], str]:
    found = {}
    for fact in ledger.book.facts:
        record = fact.envelope.event
        if isinstance(record, RankDevice) and record.pci_address is not None:
            address, uuid = address_of(record.pci_address), uuid_of(record.device)
            if address is not None and uuid is not None:
                found[fact.envelope.node, str(address)] = uuid
    return found


def _charge(one: Mapping[str, Any]) -> Charge:
    return Charge(
        node=one["suspect_node"],
        gpu=one["suspect_gpu"] if one["cause"] == "gpu_fault" else None,
        incident=one["incident"],
        cause=one["cause"],
        opened=one["opened"],
        loss=Loss(
            steps=one["rollback_steps"] or 0, time=one["lost_ns"], gpu_time=one["lost_gpu_ns"]
        ),
    )


def joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return stretches without their overlaps, in order of time."""
    found: list[Stretch] = []
    for one in sorted(stretches):
        if found and one.start <= found[-1].end:
            found[-1] = Stretch(found[-1].start, max(found[-1].end, one.end))
        else:
            found.append(one)
    return found


def _scheduler(ledger: Ledger) -> str | None:
    """Return who gave the run its machines, as far as its events tell."""
    for fact in ledger.book.facts:
        record = fact.envelope.event
        if isinstance(record, AttemptStarted) and record.scheduler is not None:
            return record.scheduler
        if isinstance(record, Allocation) and record.source is not None:
            source = record.source.lower()
            if "slurm" in source:
                return "slurm"
            if any(name in source for name in _KUBERNETES):
                return "kubernetes"
    return None
