"""The answer to "what does this GPU fault ask for", as data that a site can override.

A policy maps codes to classes and nothing else; `classify` looks a fault up. The verdict names
the policy, so that a stored fault says by which rules it was judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, TypeVar

from headway.events import Described, GpuFault, GpuSxid, GpuXid
from headway.gpu_faults import nvlink5
from headway.gpu_faults.table import VERSION, XIDS

RECOVERY_ACTION_XID = 154
"""Xid that announces a new recovery action."""

RECOVERY_ACTIONS: Mapping[int, tuple[str, str]] = {
    0: ("none", "watch"),
    1: ("GPU reset", "reset"),
    2: ("node reboot", "reboot"),
    3: ("drain P2P", "reset"),
    4: ("drain and reset", "reset"),
    5: ("recover IMEX domain", "watch"),
    6: ("bus reset", "reset"),
    7: ("system reboot", "reboot"),
}
"""Name and class of each recovery action by NVML's number.

The driver's words for a number change between versions. A broken IMEX domain is no fault of
one GPU, as NVIDIA's DRA driver sees it too.
"""

KINDS: Mapping[str, str] = {
    "lost": "reboot",
    "fallen_off_bus": "reboot",
    "reset_required": "reset",
    "gsp_heartbeat": "reset",
    "query_hung": "reset",
    "ecc_uncorrected": "reset",
    "row_remap_failed": "replace",
    "page_retirement": "watch",
}
"""Class of each kind of fault that is known by something else than an Xid.

`recovery_action` and `xid_changed` are not here: their code decides.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What each fault asks for, by the rules of one place."""

    name: Annotated[str, Described("Name of the policy.")]
    version: Annotated[str, Described("Its version.")]
    xids: Annotated[Mapping[int, str], Described("Class of each Xid.")]
    sub_codes: Annotated[
        Mapping[tuple[int, int], str],
        Described("Class of an Xid of NVLink 5 by its sub-code, before NVIDIA's decode table."),
    ] = field(default_factory=dict)
    sxids: Annotated[
        Mapping[int, str], Described("Class of an SXid by its number, before its severity.")
    ] = field(default_factory=dict)
    recovery_actions: Annotated[
        Mapping[int, str], Described("Class of each recovery action by NVML's number.")
    ]
    kinds: Annotated[Mapping[str, str], Described("Class of each kind of `gpu.fault`.")]
    fatal: Annotated[str, Described("Class where only the driver's `Fatal` is known.")] = "reset"
    nonfatal: Annotated[str, Described("Class where only the driver's `Nonfatal` is known.")] = (
        "watch"
    )
    unlisted: Annotated[str, Described("Class of a code that no list holds.")] = "watch"

    @property
    def label(self) -> str:
        """Name and version, as stored with each fault."""
        return f"{self.name} {self.version}"


DEFAULT_POLICY = Policy(
    name="headway",
    version=VERSION,
    xids={code: entry.classification for code, entry in XIDS.items()},
    recovery_actions={number: class_ for number, (_, class_) in RECOVERY_ACTIONS.items()},
    kinds=KINDS,
)
"""The policy where nobody gave another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a fault asks for and who says so."""

    classification: Annotated[str, Described("What it asks for.")]
    policy: Annotated[str, Described("Name and version of the policy.")]
    reason: Annotated[str, Described("The entry that decided, in words.")]


def classify(fault: GpuXid | GpuSxid | GpuFault, policy: Policy = DEFAULT_POLICY) -> Verdict:
    """Say what a fault asks for.

    The most exact entry decides: the recovery action of Xid 154; of an Xid of NVLink 5 the
    policy's sub-code, else NVIDIA's decode table, else the driver's `Fatal` or `Nonfatal`; then
    the code. What the fault carries in `classification` is not looked at.
    """
    match fault:
        case GpuXid():
            classification, reason = _of_xid(fault, policy)
        case GpuSxid():
            classification, reason = _of_sxid(fault, policy)
        case GpuFault():
            classification, reason = _of_fault(fault, policy)
    return Verdict(classification=classification, policy=policy.label, reason=reason)


F = TypeVar("F", bound=GpuXid | GpuSxid | GpuFault)


def classified(fault: F, policy: Policy = DEFAULT_POLICY) -> F:
    """Return the fault with what it asks for and who says so."""
    verdict = classify(fault, policy)
    return replace(fault, classification=verdict.classification, policy=verdict.policy)


def _of_xid(fault: GpuXid, policy: Policy) -> tuple[str, str]:
    if fault.code == RECOVERY_ACTION_XID and fault.recovery_action is not None:
        return _of_action(fault.recovery_action, policy)
    if fault.code in nvlink5.XIDS:
        found = _of_nvlink5(fault, policy)
        if found is not None:
            return found
    return _of_code(fault.code, policy)


def _of_code(code: int, policy: Policy) -> tuple[str, str]:
    if code in policy.xids:
        return policy.xids[code], f"Xid {code}"
    return policy.unlisted, f"Xid {code} is not listed"


def _of_action(number: int, policy: Policy) -> tuple[str, str]:
    if number in policy.recovery_actions:
        return policy.recovery_actions[number], f"recovery action {number}"
    return policy.fatal, f"recovery action {number} is not listed"


def _of_nvlink5(fault: GpuXid, policy: Policy) -> tuple[str, str] | None:
    if fault.sub_code is not None and (fault.code, fault.sub_code) in policy.sub_codes:
        return policy.sub_codes[fault.code, fault.sub_code], f"Xid {fault.code}.{fault.sub_code}"
    if fault.unit is not None and fault.error_status is not None:
        known = nvlink5.severity(fault.unit, fault.error_status, fault.sub_code)
        if known is not None:
            return known, f"{fault.unit} with error status {fault.error_status:#x}"
    if fault.fatal is not None:
        return _of_severity(fault.fatal, policy)
    return None


def _of_severity(fatal: bool, policy: Policy) -> tuple[str, str]:
    return (
        (policy.fatal, "the driver calls it fatal")
        if fatal
        else (policy.nonfatal, "the driver calls it nonfatal")
    )


def _of_sxid(fault: GpuSxid, policy: Policy) -> tuple[str, str]:
    if fault.code in policy.sxids:
        return policy.sxids[fault.code], f"SXid {fault.code}"
    if fault.fatal is not None:
        return _of_severity(fault.fatal, policy)
    return policy.unlisted, f"SXid {fault.code} of unknown severity"


def _of_fault(fault: GpuFault, policy: Policy) -> tuple[str, str]:
    if fault.kind == "recovery_action" and fault.code is not None:
        return _of_action(fault.code, policy)
    if fault.kind == "xid_changed" and fault.code is not None:
        return _of_code(fault.code, policy)
    if fault.kind in policy.kinds:
        return policy.kinds[fault.kind], fault.kind
    return policy.unlisted, f"{fault.kind} is not listed"
