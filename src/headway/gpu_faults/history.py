"""Rules over the faults of GPUs in the past: what a single fault does not say.

Copied in meaning from NVSentinel (repeats within a day, the same place or not) and gpud (reboots
that do not clear). A burst of one code on one GPU counts as one fault, from whichever source its
events came; a consequence (Xid 45) never counts.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from headway.events import Described, GpuFault, GpuSxid, GpuXid

_SECOND = 10**9
DAY = 86_400 * _SECOND
BURST = 180 * _SECOND
"""Faults of one GPU that lie closer together, in ns, count once among the severe ones."""
EXCEPTION_BURST = 15 * _SECOND
"""The same for Xid 13, which the driver prints many times at once."""
SEVERE = ("reset", "reboot", "replace")
"""Classes that take a GPU out of service."""
SEVERE_FAULTS = 5
"""Severe faults of one GPU within a day after which it is looked at."""
REBOOTS = 2
"""Reboots after which the same Xid shows that a further one will not help."""
_CLEANUP, _EXCEPTION, _PAGE_FAULT = 45, 13, 31
_PLACE = re.compile(r"\(GPC (\d{1,3}), TPC (\d{1,3})")

Fault = GpuXid | GpuSxid | GpuFault


@dataclass(frozen=True, slots=True, kw_only=True)
class PastFault:
    """One classified fault and where it happened."""

    time: Annotated[int, Described("When it happened.", "ns")]
    gpu: Annotated[str, Described("Name by which one GPU is known over time, such as its UUID.")]
    fault: Annotated[Fault, Described("What was recorded.")]
    boot_id: Annotated[str | None, Described("Boot of the node during which it happened.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the history of a GPU says beyond its single faults."""

    rule: Annotated[str, Described("Name of the rule.")]
    gpu: Annotated[str, Described("The GPU that it is about.")]
    advice: Annotated[str, Described("What to do, in words.")]
    faults: Annotated[tuple[PastFault, ...], Described("The faults that it rests on, in order.")]


def findings(faults: Iterable[PastFault], until: int) -> list[Finding]:
    """Apply every rule to the day before `until` (UTC ns), reboots to all of the history."""
    ordered = sorted(faults, key=lambda fault: (fault.time, fault.gpu))
    recent = [fault for fault in ordered if until - DAY < fault.time <= until]
    return [
        *repeated_severe(recent),
        *repeated_page_faults(recent),
        *repeated_exceptions(recent),
        *uncleared_reboots([fault for fault in ordered if fault.time <= until]),
    ]


def repeated_severe(faults: Sequence[PastFault]) -> list[Finding]:
    """Find GPUs with `SEVERE_FAULTS` severe faults in the given time; a burst counts once."""
    found = []
    for gpu, own in _by_gpu(faults).items():
        severe = [fault for fault in own if fault.fault.classification in SEVERE]
        counted = _apart(severe, BURST)
        if len(counted) >= SEVERE_FAULTS:
            advice = f"{len(counted)} severe faults within a day: take the GPU out and test it"
            found.append(_finding("repeated_severe", gpu, advice, counted))
    return found


def repeated_page_faults(faults: Sequence[PastFault]) -> list[Finding]:
    """Tell Xid 31 that comes back on one GPU (hardware) from that on several (software)."""
    found = []
    by_gpu = _by_gpu(_xids(faults, _PAGE_FAULT))
    alone = len(by_gpu) == 1
    for gpu, own in by_gpu.items():
        counted = _apart(own, BURST)
        if alone and len(counted) >= 2:
            advice = "page faults on this GPU alone: run its diagnostics"
            found.append(_finding("same_gpu_page_fault", gpu, advice, counted))
        elif not alone:
            advice = f"page faults on {len(by_gpu)} GPUs: look for the fault in the program"
            found.append(_finding("many_gpus_page_fault", gpu, advice, counted))
    return found


def repeated_exceptions(faults: Sequence[PastFault]) -> list[Finding]:
    """Tell Xid 13 that comes back at one GPC and TPC of a GPU from that at changing places.

    A line without a place says nothing either way.
    """
    found = []
    for gpu, own in _by_gpu(_xids(faults, _EXCEPTION)).items():
        placed = [(place, fault) for fault in own if (place := place_of(fault.fault)) is not None]
        by_place: dict[tuple[int, int], list[PastFault]] = defaultdict(list)
        for place, fault in placed:
            by_place[place].append(fault)
        for (gpc, tpc), there in sorted(by_place.items()):
            counted = _apart(there, EXCEPTION_BURST)
            if len(counted) >= 2:
                advice = f"exceptions at GPC {gpc}, TPC {tpc} again: run the GPU's diagnostics"
                found.append(_finding("same_place_exception", gpu, advice, counted))
        counted = _apart([fault for _, fault in placed], EXCEPTION_BURST)
        if len(by_place) > 1 and len(counted) >= 2 and not _of("same_place_exception", gpu, found):
            advice = "exceptions at changing places: look for the fault in the program"
            found.append(_finding("many_places_exception", gpu, advice, counted))
    return found


def uncleared_reboots(faults: Sequence[PastFault]) -> list[Finding]:
    """Find an Xid that came back after `REBOOTS` reboots: the hardware has to be inspected."""
    found = []
    for gpu, own in _by_gpu(faults).items():
        by_code: dict[int, list[PastFault]] = defaultdict(list)
        for fault in own:
            if isinstance(fault.fault, GpuXid) and fault.fault.classification in SEVERE:
                by_code[fault.fault.code].append(fault)
        for code, same in sorted(by_code.items()):
            first = _first_of_each_boot(same)
            if len(first) > REBOOTS:
                advice = (
                    f"Xid {code} came back after {len(first) - 1} reboots: have the hardware "
                    "inspected or replaced"
                )
                found.append(_finding("uncleared_reboots", gpu, advice, first))
    return found


def is_consequence(fault: Fault) -> bool:
    """Return whether a fault only follows from another: it is no root cause and never counts."""
    cleanup = isinstance(fault, GpuXid) and fault.code == _CLEANUP
    return cleanup or fault.classification == "consequence"


def place_of(fault: Fault) -> tuple[int, int] | None:
    """Return GPC and TPC that an Xid 13 names, None where it names none."""
    found = _PLACE.search((fault.message or "")[:200])
    return None if found is None else (int(found[1]), int(found[2]))


def _xids(faults: Iterable[PastFault], code: int) -> list[PastFault]:
    return [
        fault for fault in faults if isinstance(fault.fault, GpuXid) and fault.fault.code == code
    ]


def _by_gpu(faults: Iterable[PastFault]) -> Mapping[str, list[PastFault]]:
    found: dict[str, list[PastFault]] = defaultdict(list)
    for fault in faults:
        if not is_consequence(fault.fault):
            found[fault.gpu].append(fault)
    return dict(sorted(found.items()))


def _apart(faults: Iterable[PastFault], burst: int) -> list[PastFault]:
    """Return the first fault of each burst, which lasts `burst` ns from it on."""
    found: list[PastFault] = []
    for fault in faults:
        if not found or fault.time - found[-1].time > burst:
            found.append(fault)
    return found


def _first_of_each_boot(faults: Iterable[PastFault]) -> list[PastFault]:
    first: dict[str, PastFault] = {}
    for fault in faults:
        if fault.boot_id is not None:
            first.setdefault(fault.boot_id, fault)
    return list(first.values())


def _of(rule: str, gpu: str, found: Iterable[Finding]) -> bool:
    return any(finding.rule == rule and finding.gpu == gpu for finding in found)


def _finding(rule: str, gpu: str, advice: str, faults: Iterable[PastFault]) -> Finding:
    return Finding(rule=rule, gpu=gpu, advice=advice, faults=tuple(faults))
