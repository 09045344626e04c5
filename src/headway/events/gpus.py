"""The GPUs of a node, their state and what went wrong with them."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headway.events.declaration import Described, Event

GPU_FAULT_CLASSES = (
    "application",
    "reset",
    "reboot",
    "replace",
    "watch",
    "consequence",
)
"""What a GPU fault asks for: nothing of the machine, or what has to be done to the GPU or node."""


GPU_FAULT_KINDS = (
    "lost",
    "fallen_off_bus",
    "reset_required",
    "gsp_heartbeat",
    "query_hung",
    "ecc_uncorrected",
    "row_remap_failed",
    "page_retirement",
    "recovery_action",
    "xid_changed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDevice(Event):
    """The GPU, or the slice of one, on which a rank works."""

    name: ClassVar[str] = "rank.device"
    device: Annotated[str, Described("GPU's UUID.")]
    pci_address: Annotated[str | None, Described("GPU's PCI address.")] = None
    local_rank: Annotated[int | None, Described("Rank within the node.")] = None
    slice: Annotated[str | None, Described("UUID of the MIG slice.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPresent(Event):
    """A GPU of the node, as its driver lists it; said again when anything of it changes."""

    name: ClassVar[str] = "gpu.present"
    device: Annotated[str, Described("GPU's UUID.")]
    pci_address: Annotated[str, Described("GPU's PCI address.")]
    index: Annotated[int, Described("Number of the GPU on its node.")]
    product: Annotated[str | None, Described("Name of the product.")] = None
    serial: Annotated[str | None, Described("Serial number of the board.")] = None
    driver: Annotated[str | None, Described("Version of the driver.")] = None
    slices: Annotated[tuple[str, ...], Described("UUIDs of its MIG slices.")] = ()
    instances: Annotated[
        tuple[str, ...],
        Described("GPU and compute instance of each slice, such as `2/0`, in the same order."),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFault(Event):
    """A GPU fault that is known by something else than an Xid."""

    name: ClassVar[str] = "gpu.fault"
    kind: Annotated[str, Described("What was observed.", choices=GPU_FAULT_KINDS)]
    device: Annotated[
        str | None,
        Described("GPU's UUID or PCI address, else the driver's number such as `GPU6`."),
    ] = None
    source: Annotated[str | None, Described("Who saw it: kernel log, NVML, DCGM, ...")] = None
    message: Annotated[str | None, Described("Its words.")] = None
    code: Annotated[int | None, Described("Its raw number, where it has one.")] = None
    classification: Annotated[
        str | None, Described("What it asks for.", choices=GPU_FAULT_CLASSES)
    ] = None
    policy: Annotated[str | None, Described("Name and version of the policy that says so.")] = None
    line: Annotated[str | None, Described("The raw kernel line.")] = None
    repeats: Annotated[int | None, Described("Kernel lines united in this event.", "lines")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuXid(Event):
    """The driver reported an Xid."""

    name: ClassVar[str] = "gpu.xid"
    code: Annotated[int, Described("Xid number.")]
    device: Annotated[str, Described("GPU's UUID or PCI address.")]
    process_id: Annotated[int | None, Described("Process named by the driver.")] = None
    process: Annotated[str | None, Described("Its name.")] = None
    message: Annotated[str | None, Described("The driver's words.")] = None
    line: Annotated[str | None, Described("The raw kernel line.")] = None
    gpu_instance: Annotated[int | None, Described("GPU instance of a MIG slice.")] = None
    compute_instance: Annotated[int | None, Described("Compute instance of a MIG slice.")] = None
    sub_code: Annotated[int | None, Described("NVLink 5 sub-code.")] = None
    unit: Annotated[str | None, Described("Unit of NVLink 5 that reported it.")] = None
    error_status: Annotated[int | None, Described("Error status of that unit.")] = None
    fatal: Annotated[bool | None, Described("Whether the driver calls it fatal.")] = None
    link: Annotated[
        int | None, Described("NVLink on which it occurred; -1 is no particular one.", signed=True)
    ] = None
    recovery_action: Annotated[
        int | None, Described("Recovery action that Xid 154 names, by NVML's number.")
    ] = None
    caused_by: Annotated[int | None, Described("Xid that the driver names as its cause.")] = None
    repeats: Annotated[int | None, Described("Kernel lines united in this event.", "lines")] = None
    classification: Annotated[
        str | None, Described("What it asks for.", choices=GPU_FAULT_CLASSES)
    ] = None
    policy: Annotated[str | None, Described("Name and version of the policy that says so.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSxid(Event):
    """The driver reported an NVSwitch error."""

    name: ClassVar[str] = "gpu.sxid"
    code: Annotated[int, Described("SXid number.")]
    device: Annotated[str, Described("Switch's PCI address.")]
    fatal: Annotated[bool | None, Described("Whether the driver calls it fatal.")] = None
    link: Annotated[int | None, Described("Link on which it occurred.")] = None
    line: Annotated[str | None, Described("The raw kernel line.")] = None
    message: Annotated[str | None, Described("The driver's words.")] = None
    repeats: Annotated[int | None, Described("Kernel lines united in this event.", "lines")] = None
    classification: Annotated[
        str | None, Described("What it asks for.", choices=GPU_FAULT_CLASSES)
    ] = None
    policy: Annotated[str | None, Described("Name and version of the policy that says so.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample(Event):
    """State of one GPU."""

    name: ClassVar[str] = "gpu.sample"
    device: Annotated[str, Described("GPU's UUID.")]
    temperature: Annotated[float | None, Described("Temperature.", "degC")] = None
    power: Annotated[float | None, Described("Power draw.", "W")] = None
    memory_used: Annotated[int | None, Described("Memory in use.", "bytes")] = None
    utilization: Annotated[float | None, Described("Share of time with a kernel running.")] = None
    memory_total: Annotated[int | None, Described("Memory installed.", "bytes")] = None
    throttle: Annotated[
        tuple[str, ...] | None,
        Described("What holds its clocks down; empty where nothing does."),
    ] = None
    recovery_action: Annotated[
        int | None, Described("Recovery action that the driver asks for, by NVML's number.")
    ] = None
    ecc_corrected: Annotated[
        int | None, Described("Corrected memory errors since the driver was loaded.", "errors")
    ] = None
    ecc_uncorrected: Annotated[
        int | None, Described("Uncorrected memory errors since the driver was loaded.", "errors")
    ] = None
    remapped_correctable: Annotated[
        int | None, Described("Rows replaced for corrected errors in its life.", "rows")
    ] = None
    remapped_uncorrectable: Annotated[
        int | None, Described("Rows replaced for uncorrected errors in its life.", "rows")
    ] = None
    retirement_pending: Annotated[
        bool | None, Described("Whether rows or pages wait for a reset to be replaced.")
    ] = None
    remap_failed: Annotated[
        bool | None, Described("Whether a row could not be replaced in its life.")
    ] = None
    pcie_replays: Annotated[int | None, Described("PCIe replays since the reset.", "replays")] = (
        None
    )
    nvlinks_up: Annotated[int | None, Described("NVLinks that are up.", "links")] = None
    nvlink_errors: Annotated[
        int | None, Described("Errors that its NVLinks have counted.", "errors")
    ] = None
