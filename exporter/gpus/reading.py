"""What NVML says about one GPU, as plain values under the names of `gpu.present` and `gpu.sample`.

Only the helper process calls this: any question may block for ever. A question that a GPU does
not support is asked once and then left out; one that says the GPU is lost ends the reading.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NO_PERMISSION, TIMEOUT, GPU_IS_LOST, RESET_REQUIRED = 4, 10, 15, 16
SIGNALS = (GPU_IS_LOST, RESET_REQUIRED, TIMEOUT)
"""NVML's errors that are faults of the GPU and not of the question."""
_UNSUPPORTED = (2, 3, 13, 25)
"""Invalid argument, not supported, function not found, version mismatch: it will not change."""
_RECOVERY_ACTION = 230
"""Field value of the recovery action."""
_LINK_FIELDS = (161, 162, 163, 206, 207, 208, 211, 214)
"""Errors of a link: replays, recoveries and CRC up to Hopper; NVLink 5's malformed packets, buffer
overruns, receive errors, local integrity errors and failed recoveries."""
_TOTAL_FIELDS = (38, 45, 52, 59)
"""Errors of all links before Hopper: CRC of flits and of data, replays, recoveries."""
_MOST_LINKS = 18
_VALUE_TYPES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Member of the value's union by NVML's value type."""
THROTTLES = {
    0x4: "power_cap",
    0x8: "hardware_slowdown",
    0x10: "sync_boost",
    0x20: "software_thermal",
    0x40: "hardware_thermal",
    0x80: "power_brake",
}
"""NVML's clock event reasons that take performance away: not idle, nor clocks a person set."""


@dataclass(slots=True, kw_only=True)
class Gpu:
    """One GPU of the driver's list and what is known of its abilities."""

    handle: Any
    identity: Mapping[str, Any]
    """Fields of `gpu.present`."""
    unsupported: set[tuple[object, ...]] = field(default_factory=set)
    links: Sequence[int] = ()
    link_fields: Sequence[tuple[int, int]] | None = None
    """Field and scope of each error counter that it answers; None before the first question."""
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)
    """NVML's number and words where a question was refused for another reason than support."""

    @property
    def device(self) -> str:
        """The GPU's UUID."""
        return str(self.identity["device"])


def listed(nvml: Any, index: int, driver: str | None) -> Gpu:
    """Return the GPU with a number.

    Raises:
        nvml.NVMLError: one of `SIGNALS`, or the GPU cannot be identified.
    """
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    gpu = Gpu(handle=handle, identity={})
    device = nvml.nvmlDeviceGetUUID(handle)
    pci = nvml.nvmlDeviceGetPciInfo(handle).busId
    identity = {
        "device": device,
        "pci_address": address(pci.decode() if isinstance(pci, bytes) else pci),
        "index": index,
        "product": _ask(nvml, gpu, "nvmlDeviceGetName"),
        "serial": _ask(nvml, gpu, "nvmlDeviceGetSerial"),
        "driver": driver,
        **_slices(nvml, gpu),
    }
    gpu.identity = {name: value for name, value in identity.items() if value is not None}
    gpu.links = [
        link
        for link in range(_MOST_LINKS)
        if _ask(nvml, gpu, "nvmlDeviceGetNvLinkState", link) is not None
    ]
    return gpu


def address(bus_id: str) -> str:
    """Return NVML's PCI address in the kernel's form; what is no address stays as it is.

    Example: 00000000:3B:00.0 is 0000:3b:00.0.
    """
    domain, _, rest = bus_id.lower().partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest}"
    except ValueError:
        return bus_id


def quick(nvml: Any, gpu: Gpu) -> dict[str, Any]:
    """Return what changes from one second to the next.

    Raises:
        nvml.NVMLError: one of `SIGNALS`.
    """
    power = _ask(nvml, gpu, "nvmlDeviceGetPowerUsage")
    memory = _ask(nvml, gpu, "nvmlDeviceGetMemoryInfo")
    utilization = _ask(nvml, gpu, "nvmlDeviceGetUtilizationRates")
    reasons = _ask(nvml, gpu, "nvmlDeviceGetCurrentClocksEventReasons")
    if reasons is None:  # its name before driver 535
        reasons = _ask(nvml, gpu, "nvmlDeviceGetCurrentClocksThrottleReasons")
    temperature = _ask(nvml, gpu, "nvmlDeviceGetTemperature", 0)
    found = {
        "temperature": None if temperature is None else float(temperature),
        "power": None if power is None else power / 1000,
        "memory_used": None if memory is None else memory.used,
        "memory_total": None if memory is None else memory.total,
        "utilization": None if utilization is None else utilization.gpu / 100,
        "throttle": None if reasons is None else throttles(reasons),
        "recovery_action": _fields(nvml, gpu, [(_RECOVERY_ACTION, 0)]).get((_RECOVERY_ACTION, 0)),
    }
    return {name: value for name, value in found.items() if value is not None}


def slow(nvml: Any, gpu: Gpu) -> dict[str, Any]:
    """Return what rarely changes: errors counted, rows replaced, links.

    Raises:
        nvml.NVMLError: one of `SIGNALS`.
    """
    rows = _ask(nvml, gpu, "nvmlDeviceGetRemappedRows")
    retired = _ask(nvml, gpu, "nvmlDeviceGetRetiredPagesPendingStatus")
    pending = [bool(value) for value in (rows and rows[2], retired) if value is not None]
    up = [_ask(nvml, gpu, "nvmlDeviceGetNvLinkState", link) for link in gpu.links]
    found = {
        "ecc_corrected": _ask(nvml, gpu, "nvmlDeviceGetTotalEccErrors", 0, 0),
        "ecc_uncorrected": _ask(nvml, gpu, "nvmlDeviceGetTotalEccErrors", 1, 0),
        "remapped_correctable": rows and rows[0],
        "remapped_uncorrectable": rows and rows[1],
        "retirement_pending": any(pending) if pending else None,
        "remap_failed": None if rows is None else bool(rows[3]),
        "pcie_replays": _ask(nvml, gpu, "nvmlDeviceGetPcieReplayCounter"),
        "nvlinks_up": sum(state == 1 for state in up) if gpu.links else None,
        "nvlink_errors": _link_errors(nvml, gpu),
    }
    return {name: value for name, value in found.items() if value is not None}


def throttles(reasons: int) -> list[str]:
    """Return the words for NVML's bits."""
    return [word for bit, word in THROTTLES.items() if reasons & bit]


def _ask(nvml: Any, gpu: Gpu, question: str, *arguments: int) -> Any:
    """Return the answer, or None where there is none to be had."""
    asked = (question, *arguments)
    if asked in gpu.unsupported:
        return None
    call = getattr(nvml, question, None)
    if call is None:  # an older binding
        gpu.unsupported.add(asked)
        return None
    try:
        return call(gpu.handle, *arguments)
    except nvml.NVMLError as error:
        if error.value in SIGNALS:
            raise
        if error.value in _UNSUPPORTED:
            gpu.unsupported.add(asked)
        else:
            gpu.refusals[question] = (error.value, str(error))
        return None


def _fields(
    nvml: Any, gpu: Gpu, wanted: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], int | float]:
    """Return the values of those fields that the GPU answers."""
    answers = _ask_fields(nvml, gpu, wanted)
    found = {}
    for (number, scope), answer in zip(wanted, answers, strict=False):
        if answer.nvmlReturn in SIGNALS:
            raise nvml.NVMLError(answer.nvmlReturn)
        if answer.nvmlReturn == 0 and answer.valueType < len(_VALUE_TYPES):
            found[number, scope] = getattr(answer.value, _VALUE_TYPES[answer.valueType])
    return found


def _ask_fields(nvml: Any, gpu: Gpu, wanted: Sequence[tuple[int, int]]) -> Sequence[Any]:
    asked = ("nvmlDeviceGetFieldValues",)
    if asked in gpu.unsupported:
        return ()
    try:
        return list(nvml.nvmlDeviceGetFieldValues(gpu.handle, list(wanted)))
    except nvml.NVMLError as error:
        if error.value in SIGNALS:
            raise
        gpu.unsupported.add(asked)
        return ()


def _link_errors(nvml: Any, gpu: Gpu) -> int | None:
    if not gpu.links:
        return None
    if gpu.link_fields is None:
        totals = [(number, 0) for number in _TOTAL_FIELDS]
        each = [(number, link) for link in gpu.links for number in _LINK_FIELDS]
        gpu.link_fields = list(_fields(nvml, gpu, totals)) or list(_fields(nvml, gpu, each))
    if not gpu.link_fields:
        return None
    return int(sum(_fields(nvml, gpu, gpu.link_fields).values()))


def _slices(nvml: Any, gpu: Gpu) -> dict[str, list[str]]:
    """Return the UUIDs of the MIG slices, and GPU and compute instance of each."""
    mode = _ask(nvml, gpu, "nvmlDeviceGetMigMode")
    if mode is None or not mode[0]:
        return {}
    slices, instances = [], []
    for number in range(_ask(nvml, gpu, "nvmlDeviceGetMaxMigDeviceCount") or 0):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu.handle, number)
            slices.append(nvml.nvmlDeviceGetUUID(part))
            ids = nvml.nvmlDeviceGetGpuInstanceId(part), nvml.nvmlDeviceGetComputeInstanceId(part)
            instances.append("{}/{}".format(*ids))
        except nvml.NVMLError as error:
            if error.value in SIGNALS:
                raise
            # An empty place: the numbers have gaps.
    return {"slices": slices, "instances": instances}
