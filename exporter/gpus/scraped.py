"""What other exporters' metrics say about GPUs: DCGM exporter, NVSentinel's monitors, gpud.

`DCGM_FI_DEV_XID_ERRORS` holds the last Xid for ever and does not move when the same one comes
again, so it is evidence that something changed and never a count; some versions give it to a GPU
only at its first Xid. The counters of the others are read in the same way. Names and labels are
those of dcgm-exporter's default list, of NVSentinel's syslog health monitor and of gpud's xid
component.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from headway.events import Event, GpuFault, GpuPresent, GpuSample
from headway.exporter.gpus.reading import address
from headway.gpu_faults.policy import DEFAULT_POLICY, Policy, classified

_LAST_XID = "DCGM_FI_DEV_XID_ERRORS"
_WINDOWED = "DCGM_EXP_XID_ERRORS_COUNT"
_COUNTERS = {
    _WINDOWED: ("DCGM", "xid"),
    "syslog_health_monitor_xid_errors": ("NVSentinel", "err_code"),
    "accelerator_nvidia_xid_errors": ("gpud", "xid"),
}
"""Counts of Xids without `_total`: who publishes them, and the label that holds the code."""
_HIGHEST_XID = 10_000
"""DCGM says values of 2**31 and more where it knows none."""
_MEBIBYTE = 1024**2
_READINGS = {
    "DCGM_FI_DEV_GPU_TEMP": ("temperature", float, 1.0),
    "DCGM_FI_DEV_POWER_USAGE": ("power", float, 1.0),
    "DCGM_FI_DEV_FB_USED": ("memory_used", int, _MEBIBYTE),
    "DCGM_FI_DEV_GPU_UTIL": ("utilization", float, 0.01),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": ("ecc_corrected", int, 1),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("ecc_uncorrected", int, 1),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": ("remapped_correctable", int, 1),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("remapped_uncorrectable", int, 1),
    "DCGM_FI_DEV_ROW_REMAP_PENDING": ("retirement_pending", bool, 1),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("remap_failed", bool, 1),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("pcie_replays", int, 1),
}
"""Field of `gpu.sample`, its type and the factor to its unit."""
_NAMES = ("DCGM_", *_COUNTERS)
"""How the names begin that mean anything here."""
_FULL_GPU = ""
_LAST = 0
_Series = tuple[str, str | None, str, int]
"""Publisher, GPU, slice and code (`_LAST` for DCGM's last Xid)."""


class Scraped:
    """What one exporter said last."""

    def __init__(self, policy: Policy = DEFAULT_POLICY) -> None:
        """Begin with nothing; `policy` says what each fault asks for."""
        self._policy = policy
        self._gpus: dict[str, GpuPresent] = {}
        self._slow: dict[str, dict[str, Any]] = {}
        self._xids: dict[_Series, float] | None = None
        """Value of each series at the last look, None before the first."""
        self._addresses: dict[str, str] = {}

    def read(self, samples: Sequence[Sample], covered: Collection[str]) -> list[Event]:
        """Return what is new; GPUs `covered` by the driver itself are neither listed nor measured.

        Example: `read(parse(text), covered=())`.
        """
        return [*self._listed(samples, covered), *self._changes(samples)]

    def address(self, device: str | None) -> str | None:
        """Return the PCI address of a GPU that was read about."""
        return self._addresses.get(device) if device is not None else None

    def _listed(self, samples: Iterable[Sample], covered: Collection[str]) -> list[Event]:
        events: list[Event] = []
        states: dict[str, dict[str, Any]] = {}
        for sample in samples:
            device = sample.labels.get("UUID")
            if not device or device in covered or sample.labels.get("GPU_I_ID", _FULL_GPU):
                continue  # a slice's share says nothing about the whole GPU
            gpu = _present(device, sample.labels)
            if gpu is not None and self._gpus.get(device) != gpu:
                self._gpus[device] = gpu
                events.append(gpu)
            # The parser ends the name of each counter with `_total`.
            reading = _READINGS.get(sample.name.removesuffix("_total"))
            if reading is not None and 0 <= sample.value < 2**62:
                field, kind, factor = reading
                states.setdefault(device, {})[field] = kind(sample.value * factor)
        for device, state in states.items():
            told = self._slow.setdefault(device, {})
            rising = ("ecc_", "remapped_", "retirement_", "remap_", "pcie_")
            rare = {name: value for name, value in state.items() if name.startswith(rising)}
            kept = {name for name, value in rare.items() if told.get(name) == value}
            self._slow[device] = rare
            events.append(
                GpuSample(
                    device=device,
                    **{name: value for name, value in state.items() if name not in kept},
                )
            )
            events += self._fault_of(device, state, told)
        return events

    def _fault_of(
        self, device: str, state: Mapping[str, Any], before: Mapping[str, Any]
    ) -> list[Event]:
        found: list[Event] = []
        if state.get("remap_failed") and not before.get("remap_failed"):
            words = "a memory row could not be replaced"
            found.append(self._fault("row_remap_failed", device, "DCGM", words))
        errors, known = state.get("ecc_uncorrected"), before.get("ecc_uncorrected")
        if errors is not None and known is not None and errors > known:
            words = f"uncorrected memory errors rose by {errors - known} to {errors}"
            found.append(self._fault("ecc_uncorrected", device, "DCGM", words))
        return found

    def _fault(
        self, kind: str, device: str | None, publisher: str, words: str, code: int | None = None
    ) -> GpuFault:
        fault = GpuFault(kind=kind, device=device, source=publisher, message=words, code=code)
        return classified(fault, self._policy)

    def _changes(self, samples: Iterable[Sample]) -> list[Event]:
        now: dict[_Series, float] = {}
        profiles: dict[str, str] = {}
        for sample in samples:
            series = _series(sample)
            if series is not None:
                now[series] = sample.value
                device, pci = series[1], sample.labels.get("pci_bus_id")
                if device and pci:
                    self._addresses[device] = address(pci)
                profiles[series[2]] = sample.labels.get("GPU_I_PROFILE", "")
        before = self._xids
        # The last Xid of a GPU that is not listed for a while, as at the exporter's start, is no
        # new one when it is listed again; a count that begins anew counts what came since.
        silent = {known: value for known, value in (before or {}).items() if known[3] == _LAST}
        self._xids = {**silent, **now}
        if before is None:  # it may all have happened long ago
            return []
        changes: dict[tuple[str, str | None, int], dict[str, str]] = {}
        for series, value in now.items():
            publisher, device, part, code = series
            last = before.get(series, 0.0)
            if code == _LAST:
                changed, code = value not in (0.0, last), int(value)
                words = f"the last Xid is {code}, it was {last:.0f}"
            else:
                changed = value > last
                words = f"Xid {code} was counted up from {last:.0f} to {value:.0f}"
            if changed:
                changes.setdefault((publisher, device, code), {})[part] = words
        events: list[Event] = []
        for (publisher, device, code), parts in changes.items():
            # What all slices of a GPU say at once is the GPU's.
            part, words = next(iter(parts.items()))
            if part and len(parts) == 1:
                words += f" (MIG instance {part}, {profiles[part]})"
            events.append(self._fault("xid_changed", device, publisher, words, code))
        return events


def parse(text: str) -> list[Sample]:
    """Return the samples of an exposition that tell about GPUs.

    Raises:
        ValueError: the text is no exposition.
    """
    return [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if math.isfinite(sample.value) and family.name.startswith(_NAMES)
    ]


def _series(sample: Sample) -> _Series | None:
    labels = sample.labels
    part = labels.get("GPU_I_ID", _FULL_GPU)
    if sample.name == _LAST_XID:
        known = 0 <= sample.value <= _HIGHEST_XID
        return ("DCGM", _device(labels), part, _LAST) if known else None
    counter = _COUNTERS.get(sample.name.removesuffix("_total"))
    if counter is None:
        return None
    publisher, label = counter
    code = labels.get(label, "")
    # A sub-code may follow: 149.4 is an Xid 149.
    whole = code.partition(".")[0]
    if not whole.isascii() or not whole.isdigit() or not 0 < int(whole) <= _HIGHEST_XID:
        return None
    return (publisher, _device(labels), part, int(whole))


def _device(labels: Mapping[str, str]) -> str | None:
    """Return the GPU's UUID, else its PCI address, else None."""
    uuid = labels.get("UUID") or labels.get("uuid")
    pci = labels.get("pci_bus_id")
    return uuid or (address(pci) if pci else None)


def _present(device: str, labels: Mapping[str, str]) -> GpuPresent | None:
    pci, index = labels.get("pci_bus_id"), labels.get("gpu", "")
    if not pci or not index.isdigit():
        return None
    return GpuPresent(
        device=device,
        pci_address=address(pci),
        index=int(index),
        product=labels.get("modelName"),
        driver=labels.get("DCGM_FI_DRIVER_VERSION"),
    )
