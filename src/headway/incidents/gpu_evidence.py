"""What the machines told around an attempt's faults, and which GPU that accuses.

A GPU fault of class reset, reboot or replace on a GPU of the run, from five minutes before the
first fault to a minute after the last, outranks what it provoked (design section 5). All others
are listed and accuse nobody.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.events import Fault, GpuFault, GpuSxid, GpuXid
from headway.gpu_faults.history import SEVERE
from headway.gpu_faults.policy import classify
from headway.incidents.causes import of_fault
from headway.incidents.gpu_names import Slice
from headway.incidents.holders import Holder, Place, place_of
from headway.incidents.inventory import Boot, Gpu, Inventory
from headway.incidents.model import Evidence, Seen, Source
from headway.incidents.reading import Reading
from headway.ledger.intake import Stamped
from headway.wording import counted

_SECOND = 10**9
BEFORE = 300 * _SECOND
AFTER = 60 * _SECOND
"""How long before the first fault and after the last a GPU fault counts, in ns."""
_SOURCES_KEPT = 20
_KILLED = ("killed", "host_oom")
"""What the exit of a rank looks like that the kernel killed for lack of memory."""
_SWITCH = Place(True, False, None, "a switch serves every GPU of its node")
_NAMELESS = Place(True, False, None, "the record names no GPU")

GpuRecord = GpuXid | GpuSxid | GpuFault


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One GPU fault: what it asks for, by whose rules, and whose the GPU is.

    `process_rank` is the rank on the node whose process the driver names.
    """

    fact: Stamped
    record: GpuRecord
    classification: str
    policy: str
    gpu: str | None
    place: Place
    slice: Slice | None = None
    process_rank: int | None = None

    @property
    def name(self) -> str:
        """What people call it."""
        if isinstance(self.record, GpuXid):
            return f"Xid {self.record.code}"
        if isinstance(self.record, GpuSxid):
            return f"SXid {self.record.code}"
        return f"GPU {self.record.kind.replace('_', ' ')}"

    @property
    def times(self) -> int:
        """How often it was seen."""
        return 1 if isinstance(self.record, GpuFault) else self.record.repeats or 1

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two records one line; what only follows from others is one line per code."""
        if self.classification == "consequence":
            return (self.name, self.fact.envelope.node)
        device = self.gpu or self.record.device
        return (self.name, self.fact.envelope.node, device, self.slice, self.classification)


def gpu_evidence(
    reading: Reading, position: int, opened: int, evidence: Sequence[Evidence]
) -> list[Evidence]:
    """Return what the machines of an attempt told around its faults, in order of time.

    `opened` is when it broke, in ns; `evidence` is what else was observed. What struck an earlier
    attempt explains that one, and no longer one that has completed a step since.
    """
    attempt = reading.accounts[position].attempt
    since = opened - BEFORE
    if position and reading.accounts[position].steps is not None:
        earlier = reading.accounts[position - 1].attempt.end
        since = max(since, min(earlier + AFTER, attempt.begin))
    last = max((item.time for item in evidence), default=opened)
    findings: list[Finding] = []
    found: list[Evidence] = []
    for fact in reading.of_machines(since, last + AFTER):
        record = fact.envelope.event
        near = reading.holders.on(attempt, fact.envelope.node)
        if not near:
            continue
        if isinstance(record, GpuRecord):
            findings.append(finding_of(reading.inventory, near, fact, record))
        elif isinstance(record, Fault):
            found.append(_of_node(fact, record, attempt.identity, evidence))
    return sorted(
        [*found, *_lines(findings, attempt.identity)], key=lambda item: (item.time, item.words)
    )


def finding_of(
    inventory: Inventory, holders: Sequence[Holder], fact: Stamped, record: GpuRecord
) -> Finding:
    """Return what is known of a GPU fault: its class as recorded, else by the default policy.

    `holders` are the ranks that an attempt has on its node.
    """
    classification, policy = record.classification, record.policy
    if classification is None:
        verdict = classify(record)
        classification, policy = verdict.classification, verdict.policy
    gpu, slice_ = _gpu(inventory, fact, record)
    named = named_in(holders, Boot(fact.envelope.node, fact.envelope.boot_id), record)
    place = _place(holders, fact, record, gpu, slice_, named)
    return Finding(
        fact=fact,
        record=record,
        classification=classification,
        policy=policy or "of the record",
        gpu=None if gpu is None else gpu.uuid or place.gpu or gpu.name,
        place=place,
        slice=slice_,
        process_rank=None if named is None else named.rank,
    )


def _gpu(inventory: Inventory, fact: Stamped, record: GpuRecord) -> tuple[Gpu | None, Slice | None]:
    if record.device is None or isinstance(record, GpuSxid):
        return None, None
    boot = Boot(fact.envelope.node, fact.envelope.boot_id)
    sliced = inventory.of_slice(boot, record.device, fact.time)
    if sliced is not None:
        return sliced
    gpu = inventory.named(boot, record.device, fact.time)
    if not isinstance(record, GpuXid) or record.gpu_instance is None:
        return gpu, None
    return gpu, Slice(record.gpu_instance, record.compute_instance)


def _place(
    holders: Sequence[Holder],
    fact: Stamped,
    record: GpuRecord,
    gpu: Gpu | None,
    slice_: Slice | None,
    named: Holder | None,
) -> Place:
    rank = fact.envelope.rank
    if rank is not None and any(holder.rank == rank for holder in holders):
        return Place(True, True, rank, "the record names the rank")
    if isinstance(record, GpuSxid):
        return _SWITCH
    if gpu is None:
        return _NAMELESS
    return place_of(holders, gpu, slice_, named)


def named_in(holders: Sequence[Holder], boot: Boot, record: GpuRecord) -> Holder | None:
    """Return the rank on a node whose process a record names.

    In containers the kernel's numbers and the ranks' own differ, so that no match means nothing.
    """
    process_id = record.process_id if isinstance(record, GpuXid) else None
    for holder in holders if process_id is not None else ():
        if holder.process_id == process_id and holder.boot.may_be(boot):
            return holder
    return None


def _lines(findings: Sequence[Finding], attempt: str) -> list[Evidence]:
    """Return one observation for each kind of fault of each GPU; repeats are counted."""
    accusing = [one for one in findings if one.classification in SEVERE and one.place.ours]
    if any(one.place.certain for one in accusing):
        accusing = [one for one in accusing if one.place.certain]
    causes = {(one.record.code, one.gpu) for one in accusing if not isinstance(one.record, GpuSxid)}
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in findings:
        groups.setdefault(one.key, []).append(one)
    return [
        _line(group, attempt, any(one in accusing and not _follows(one, causes) for one in group))
        for group in groups.values()
    ]


def _follows(one: Finding, causes: set[tuple[int | None, str | None]]) -> bool:
    """Whether the driver itself says that another fault of the GPU, which is seen, caused it."""
    cause = one.record.caused_by if isinstance(one.record, GpuXid) else None
    return cause is not None and (cause, one.gpu) in causes


def _line(group: Sequence[Finding], attempt: str, accuses: bool) -> Evidence:
    one = group[0]
    envelope, record, place = one.fact.envelope, one.record, one.place
    times = _times(group)
    gpus = sorted({each.gpu for each in group if each.gpu is not None})
    where = gpus[0] if len(gpus) == 1 else counted(len(gpus), "GPU")
    words = one.name + (f" on {where}" if gpus else "")
    words += f" on switch {record.device}" if isinstance(record, GpuSxid) else ""
    follows = one.classification == "consequence"
    words += f": {record.message}" if record.message and not follows else ""
    words += f" ({times:,} times)" if times > 1 else ""
    words += ", a consequence" if follows else ""
    if one.process_rank is not None and not follows:
        words += f", in the process of rank {one.process_rank}"
    words += "" if place.ours or len(gpus) > 1 else ", which no rank of this run works on"
    kinds = {GpuXid: "xid", GpuSxid: "sxid", GpuFault: "gpu fault"}
    return Evidence(
        time=one.fact.time,
        began=one.fact.time,
        cause="gpu_fault" if accuses else "unknown",
        kind=kinds[type(record)],
        words=words,
        rank=place.rank if len(gpus) < 2 else None,
        node=envelope.node,
        gpu=one.gpu if len(gpus) < 2 else None,
        signature=one.name,
        attempt=attempt,
        sources=tuple(
            Source(each.fact.envelope.producer, each.fact.envelope.first_sequence)
            for each in group[:_SOURCES_KEPT]
        ),
        classification=one.classification,
        policy=one.policy,
        placed=place.rule,
    )


def _times(group: Sequence[Finding]) -> int:
    """Return how often something was seen: the kernel's log and NVML may both tell of it."""
    seen: Counter[object] = Counter()
    for one in group:
        record = one.record
        source = record.source if isinstance(record, GpuFault) else record.line is not None
        seen[source] += one.times
    return max(seen.values())


def _of_node(fact: Stamped, record: Fault, attempt: str, evidence: Sequence[Evidence]) -> Evidence:
    """Return a fault of a node; that it ran out of memory counts where a rank on it was killed."""
    envelope = fact.envelope
    source = Source(envelope.producer, envelope.first_sequence)
    seen = Seen(fact.time, fact.time, None, envelope.node, attempt, source)
    found = of_fault(seen, record, record.phase)
    if found.cause != "host_oom":
        return found
    killed = [
        item
        for item in evidence
        if item.node == envelope.node and item.kind == "exit" and item.cause in _KILLED
    ]
    if not killed:
        return replace(found, cause="unknown")
    first = min(killed, key=lambda item: item.time)
    return replace(found, rank=first.rank if found.rank is None else found.rank)
