"""Events in the words of OpenTelemetry's semantic conventions for hardware (`hw.*`), 1.44.

They have a name for a count of errors, for a state and for a GPU's use, and none for an Xid, a
run or an incident. What has no name there is not mapped. Pure: a fold over the node's events.

| event | metric | attributes |
| --- | --- | --- |
| `gpu.xid` | `hw.errors` +1 | `error.type` = `xid.79` |
| `gpu.sxid` | `hw.errors` +1 | `hw.type` = `network`, `error.type` = `sxid.20034` |
| `gpu.fault`, without changes of others' metrics | `hw.errors` +1 | `error.type` = its kind |
| `gpu.sample` | `hw.gpu.utilization`, `hw.gpu.memory.*`, `hw.power` | |
| `nic.sample` | `hw.errors` + rise, `hw.network.up` | `error.type` = the counter's name |
| all of these about GPUs | `hw.status` 1 or 0 | `hw.state` = `ok`, `degraded`, `failed` |
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headway.events import Event, GpuFault, GpuPresent, GpuSample, GpuSxid, GpuXid, NicSample
from headway.kernel_log.addresses import pci_address

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
"""The conventions' version; `hw.*` is in development there and may still change."""
OK, DEGRADED, FAILED = "ok", "degraded", "failed"
STATES = (OK, DEGRADED, FAILED)
_FAILED_KINDS = frozenset({"lost", "fallen_off_bus", "query_hung"})
_STATE_OF_CLASS = {"reset": DEGRADED, "reboot": FAILED, "replace": FAILED}
"""State of a GPU by what its fault asks for; the other classes leave it as it is."""
_UNANSWERED = frozenset({"lost", "query_hung", "reset_required"})
"""Kinds after which a reading shows that the GPU is back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One value of a metric; counters are cumulative since the fold began."""

    metric: str
    unit: str
    instrument: str
    """`counter`, `updowncounter` or `gauge`."""
    value: float
    attributes: Mapping[str, str]


class Hardware:
    """What a node's events amount to so far."""

    def __init__(self) -> None:
        self._gpus: dict[str, GpuPresent] = {}
        self._by_address: dict[str, str] = {}
        self._errors: dict[tuple[str, str, str], int] = {}
        """Count by type of hardware, its id and the type of the error."""
        self._states: dict[str, tuple[str, str]] = {}
        """State of each GPU and the kind of fault that put it there."""
        self._readings: dict[tuple[str, str], tuple[str, str, float]] = {}
        """Unit, instrument and value by metric and hardware."""
        self._types: dict[str, str] = {}

    def take(self, event: Event) -> None:
        """Take one event into account."""
        match event:
            case GpuPresent():
                self._gpus[event.device] = event
                address = pci_address(event.pci_address)
                if address is not None:
                    self._by_address[address] = event.device
                self._states.setdefault(event.device, (OK, ""))
            case GpuXid() | GpuSxid():
                self._count(event, event.device)
                if isinstance(event, GpuXid):
                    self._worsen(event.device, _STATE_OF_CLASS.get(event.classification or ""))
            case GpuFault() if event.device is not None and error_type(event) is not None:
                self._count(event, event.device)
                lost = event.kind in _FAILED_KINDS
                state = FAILED if lost else _STATE_OF_CLASS.get(event.classification or "")
                self._worsen(event.device, state, event.kind)
            case GpuSample():
                self._sample(event)
            case NicSample():
                self._nic(event)
            case _:
                pass

    def points(self) -> list[Point]:
        """Return the value of every metric now."""
        found = [
            Point(
                metric="hw.errors",
                unit="{error}",
                instrument="counter",
                value=count,
                attributes={**self._attributes(kind, name), "error.type": error},
            )
            for (kind, name, error), count in self._errors.items()
        ]
        found += [
            Point(
                metric="hw.status",
                unit="1",
                instrument="updowncounter",
                value=int(state == known),
                attributes={**self._attributes("gpu", name), "hw.state": known},
            )
            for name, (state, _) in self._states.items()
            for known in STATES
        ]
        found += [
            Point(
                metric=metric,
                unit=unit,
                instrument=instrument,
                value=value,
                attributes=self._attributes(self._types[name], name),
            )
            for (metric, name), (unit, instrument, value) in self._readings.items()
        ]
        return found

    def _count(self, event: Event, device: str, number: int = 1, error: str | None = None) -> None:
        error = error_type(event) if error is None else error
        key = (hardware_type(event), self._id(device), str(error))
        self._errors[key] = self._errors.get(key, 0) + number

    def _worsen(self, device: str, state: str | None, kind: str = "") -> None:
        name = self._id(device)
        before, _ = self._states.get(name, (OK, ""))
        if state is not None and STATES.index(state) > STATES.index(before):
            self._states[name] = (state, kind)
        else:
            self._states.setdefault(name, (OK, ""))

    def _sample(self, sample: GpuSample) -> None:
        name = self._id(sample.device)
        state, kind = self._states.setdefault(name, (OK, ""))
        if kind in _UNANSWERED or (state != OK and sample.recovery_action == 0):
            self._states[name] = (OK, "")
        readings = {
            "hw.gpu.utilization": ("1", "gauge", sample.utilization),
            "hw.gpu.memory.usage": ("By", "updowncounter", sample.memory_used),
            "hw.gpu.memory.limit": ("By", "updowncounter", sample.memory_total),
            "hw.power": ("W", "gauge", sample.power),
        }
        for metric, (unit, instrument, value) in readings.items():
            if value is not None:
                self._readings[metric, name] = (unit, instrument, value)
                self._types[name] = "gpu"

    def _nic(self, sample: NicSample) -> None:
        name = sample.device if sample.port is None else f"{sample.device}/{sample.port}"
        for counter, rise in (sample.counters or {}).items():
            self._count(sample, name, int(rise), error=counter)
        if sample.up is not None:
            self._readings["hw.network.up", name] = ("1", "updowncounter", int(sample.up))
            self._types[name] = "network"

    def _id(self, device: str) -> str:
        """Return a GPU's UUID where its address is known, else what the event calls it."""
        return self._by_address.get(pci_address(device) or "", device)

    def _attributes(self, kind: str, name: str) -> dict[str, str]:
        found = {"hw.id": name, "hw.type": kind}
        gpu = self._gpus.get(name)
        if gpu is not None:
            found["hw.name"] = f"GPU {gpu.index}"
            found["hw.vendor"] = "NVIDIA"
            optional = {
                "hw.model": gpu.product,
                "hw.serial_number": gpu.serial,
                "hw.driver_version": gpu.driver,
            }
            found |= {key: value for key, value in optional.items() if value is not None}
        return found


def points(events: Iterable[Event]) -> list[Point]:
    """Return the metrics that a node's events amount to."""
    hardware = Hardware()
    for event in events:
        hardware.take(event)
    return hardware.points()


def hardware_type(event: Event) -> str:
    """Return `hw.type` of what an event is about; a switch of NVLinks is a network."""
    return "network" if isinstance(event, GpuSxid | NicSample) else "gpu"


def error_type(event: Event) -> str | None:
    """Return the convention's `error.type` of a GPU's fault, None for what counts as no error.

    Other exporters' metrics that changed are evidence and no count.
    """
    match event:
        case GpuXid():
            return f"xid.{event.code}"
        case GpuSxid():
            return f"sxid.{event.code}"
        case GpuFault() if event.kind != "xid_changed":
            return event.kind
    return None


def attributes(event: Event) -> dict[str, str]:
    """Return the convention's attributes of a GPU's fault, for its log record; else none."""
    error = error_type(event)
    if error is None:
        return {}
    found = {"hw.type": hardware_type(event), "error.type": error}
    device = getattr(event, "device", None)
    return found if device is None else {"hw.id": device, **found}
