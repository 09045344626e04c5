"""GPU events in OpenTelemetry's words: its names, its units, its attributes, and nothing else."""

import inspect
import re

from opentelemetry.semconv._incubating.attributes import hw_attributes
from opentelemetry.semconv._incubating.metrics import hw_metrics
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.semconv.schemas import Schemas

from headway.events import (
    Envelope,
    Event,
    GpuFault,
    GpuPresent,
    GpuSample,
    GpuSxid,
    GpuXid,
    Health,
    NicSample,
)
from headway.exporter.hardware_conventions import SCHEMA_URL, Point, attributes, points
from headway.exporter.shipping import to_otlp
from headway.gpu_faults.policy import classified

UUID = "GPU-0"
PRESENT = GpuPresent(
    device=UUID, pci_address="0000:cb:00.0", index=3, product="H100", serial="7", driver="580"
)
ABOUT = {
    "hw.id": UUID,
    "hw.type": "gpu",
    "hw.name": "GPU 3",
    "hw.vendor": "NVIDIA",
    "hw.model": "H100",
    "hw.serial_number": "7",
    "hw.driver_version": "580",
}


def xid(code: int, device: str = "0000:cb:00") -> GpuXid:
    return classified(GpuXid(code=code, device=device))


def fault(kind: str, device: str | None = UUID, code: int | None = None) -> GpuFault:
    return classified(GpuFault(kind=kind, device=device, code=code))


def errors(*events: Event) -> dict[tuple[str, str], float]:
    return {
        (point.attributes["hw.id"], point.attributes["error.type"]): point.value
        for point in points(events)
        if point.metric == "hw.errors"
    }


def state(*events: Event) -> str:
    (found,) = (
        point.attributes["hw.state"]
        for point in points(events)
        if point.metric == "hw.status" and point.value == 1
    )
    return found


def test_a_fault_is_a_count_of_its_gpu_by_whatever_name_it_came() -> None:
    assert errors(PRESENT, xid(79), xid(79, UUID), xid(48), fault("lost")) == {
        (UUID, "xid.79"): 2,
        (UUID, "xid.48"): 1,
        (UUID, "lost"): 1,
    }
    (point, *_) = points([PRESENT, xid(79)])
    assert point == Point(
        metric="hw.errors",
        unit="{error}",
        instrument="counter",
        value=1,
        attributes={**ABOUT, "error.type": "xid.79"},
    )


def test_a_change_in_another_exporters_metric_is_no_count() -> None:
    assert errors(PRESENT, fault("xid_changed", code=79)) == {}
    assert attributes(fault("xid_changed", code=79)) == {}


def test_a_switch_and_a_network_port_count_as_networks() -> None:
    switch = GpuSxid(code=20034, device="0000:c1:00.0")
    rose = NicSample(device="mlx5_0", port=1, up=True, counters={"symbol_error": 4})
    assert errors(switch, rose, rose) == {
        ("0000:c1:00.0", "sxid.20034"): 1,
        ("mlx5_0/1", "symbol_error"): 8,
    }
    up = points([rose])[-1]
    assert (up.metric, up.value) == ("hw.network.up", 1)
    assert up.attributes == {"hw.id": "mlx5_0/1", "hw.type": "network"}


def test_the_state_follows_what_the_fault_asks_for() -> None:
    assert state(PRESENT) == "ok"
    assert state(PRESENT, xid(31)) == "ok"
    assert state(PRESENT, xid(48)) == "degraded"
    assert state(PRESENT, xid(79), xid(48)) == "failed"
    assert state(PRESENT, fault("query_hung")) == "failed"


def test_a_gpu_is_ok_again_once_it_answers_or_asks_for_nothing() -> None:
    sample = GpuSample(device=UUID, temperature=40.0)
    healed = GpuSample(device=UUID, recovery_action=0)
    assert state(PRESENT, fault("lost"), sample) == "ok"
    assert state(PRESENT, xid(48), sample) == "degraded"
    assert state(PRESENT, xid(48), healed) == "ok"


def test_readings_are_the_newest_known_ones() -> None:
    first = GpuSample(device=UUID, utilization=0.5, memory_used=5, memory_total=80, power=300.0)
    second = GpuSample(device=UUID, utilization=0.75)
    found = {point.metric: point.value for point in points([PRESENT, first, second])[3:]}
    assert found == {
        "hw.gpu.utilization": 0.75,
        "hw.gpu.memory.usage": 5,
        "hw.gpu.memory.limit": 80,
        "hw.power": 300.0,
    }


def test_what_has_no_name_there_is_not_mapped() -> None:
    assert points([Health(check="gpu", state="healthy")]) == []
    assert points([fault("query_hung", device=None)]) == []


def test_a_log_record_of_a_fault_carries_the_conventions_attributes() -> None:
    assert attributes(xid(79)) == {
        "hw.id": "0000:cb:00",
        "hw.type": "gpu",
        "error.type": "xid.79",
    }
    assert attributes(GpuSample(device=UUID)) == {}


def test_names_units_and_kinds_are_those_of_the_installed_conventions() -> None:
    sample = GpuSample(device=UUID, utilization=0.5, memory_used=5, memory_total=80, power=300.0)
    nic = NicSample(device="mlx5_0", port=1, up=True, counters={"symbol_error": 4})
    found = points([PRESENT, xid(79), sample, nic])
    known = {
        value: name.removeprefix("HW_").lower()
        for name, value in vars(hw_metrics).items()
        if name.startswith("HW_")
    }
    for point in found:
        source = inspect.getsource(getattr(hw_metrics, f"create_hw_{known[point.metric]}"))
        assert f'unit="{point.unit}"' in source
        kind = re.search(r"create_(?:observable_)?(\w+)\(\n", source)
        assert kind is not None
        assert kind[1].replace("_", "") == point.instrument
    names = set().union(*(point.attributes for point in found))
    listed = {value for name, value in vars(hw_attributes).items() if name.startswith("HW_")}
    assert names <= {*listed, error_attributes.ERROR_TYPE}
    states = {item.value for item in hw_attributes.HwStateValues}
    assert {point.attributes.get("hw.state", "ok") for point in found} <= states
    types = {item.value for item in hw_attributes.HwTypeValues}
    assert {point.attributes["hw.type"] for point in found} <= types
    assert SCHEMA_URL in {schema.value for schema in Schemas}


def test_what_the_agent_ships_carries_them_beside_its_own_fields() -> None:
    envelope = Envelope(
        producer="a" * 32,
        anchor=0,
        first_sequence=1,
        last_sequence=1,
        run=None,
        node="n7",
        wall=5,
        monotonic=5,
        event=xid(79),
    )
    (record,) = to_otlp([envelope])
    found = dict(record.log_record.attributes or {})
    assert (found["code"], found["error.type"], found["hw.type"]) == (79, "xid.79", "gpu")
