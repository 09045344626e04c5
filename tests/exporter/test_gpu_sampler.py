"""The GPU sampler on a driver that a test directs, through the real binding and a real helper."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gpu_scenario import (
    DOUBLE_BIT,
    RECOVERY,
    RETIREMENT,
    RETIREMENT_FAILURE,
    XID,
    Scenario,
    gpu,
)
from gpu_watch import Recorded, Watch, gpu_watch
from headway.events import GpuFault, GpuPresent, GpuSample, GpuXid, Health
from headway.exporter.gpus import echoes, sampler
from headway.exporter.gpus.echoes import KernelXids
from headway.exporter.gpus.findings import BURST, REPEAT_INTERVAL, Findings
from headway.exporter.gpus.sampler import GpuSampler
from headway.gpu_faults.policy import classified

FIRST, SECOND = gpu(0)["uuid"], gpu(1)["uuid"]


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path / "gpus.json")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "FIRST_DELAY", 0.05)
    monkeypatch.setattr(echoes, "PATIENCE", 0)


def states(watch: Watch) -> list[str]:
    return [event.state for event in watch.of(Health)]


def kinds_of(recorded: Recorded) -> list[tuple[str, str | None]]:
    return [(fault.kind, fault.device) for fault in recorded.of(GpuFault)]


def kinds(watch: Watch) -> list[tuple[str, str | None]]:
    return kinds_of(watch.recorded)


def test_each_gpu_is_listed_and_measured(scenario: Scenario) -> None:
    with gpu_watch(scenario) as watch:
        watch.until(lambda: len(watch.of(GpuSample)) > 3)
    assert watch.of(GpuPresent)[1] == GpuPresent(
        device=SECOND,
        pci_address="0000:1c:00.0",
        index=1,
        product="NVIDIA H100 80GB HBM3",
        serial="1650123000001",
        driver="580.82.07",
    )
    assert watch.of(GpuSample)[0] == GpuSample(
        device=FIRST,
        temperature=40.0,
        power=350.5,
        memory_used=60 * 1024**3,
        memory_total=80 * 1024**3,
        utilization=0.97,
        throttle=(),
        recovery_action=0,
        ecc_corrected=0,
        ecc_uncorrected=0,
        remapped_correctable=0,
        remapped_uncorrectable=0,
        retirement_pending=False,
        remap_failed=False,
        pcie_replays=0,
        nvlinks_up=18,
        nvlink_errors=0,
    )
    assert watch.of(Health) == [Health(check="gpu", state="healthy", detail="2 GPUs")]
    assert not watch.of(GpuFault)


@pytest.mark.slow
def test_what_rarely_changes_is_told_again_only_when_it_did(scenario: Scenario) -> None:
    with gpu_watch(scenario) as watch:
        watch.until(lambda: len(watch.of(GpuSample)) > 3)
        scenario.breaks(0, reasons=0x4 | 0x40 | 0x1)
        watch.until(lambda: any(sample.throttle for sample in watch.of(GpuSample)))
    third = watch.of(GpuSample)[2]
    assert third == GpuSample(
        device=FIRST, temperature=40.0, power=350.5, memory_used=60 * 1024**3, utilization=0.97
    )
    told = [sample.throttle for sample in watch.of(GpuSample) if sample.throttle is not None]
    assert told == [(), (), ("power_cap", "hardware_thermal")]


def test_an_xid_comes_from_the_driver_with_its_gpu(scenario: Scenario) -> None:
    with gpu_watch(scenario) as watch:
        watch.until(lambda: watch.of(GpuSample))
        scenario.reports(1, XID, 79)
        scenario.reports(0, XID, 31, instance=(2, 0))
        watch.until(lambda: len(watch.of(GpuXid)) == 2)
    lost, slice_ = watch.of(GpuXid)
    assert (lost.code, lost.device, lost.gpu_instance, lost.line) == (79, SECOND, None, None)
    assert (slice_.code, slice_.gpu_instance, slice_.compute_instance) == (31, 2, 0)
    assert (lost.classification, lost.policy) == (
        classified(lost).classification,
        classified(lost).policy,
    )
    assert lost.classification == "reboot"


@pytest.mark.slow
def test_a_flood_of_one_xid_is_one_event(scenario: Scenario) -> None:
    scenario.content["tick"] = 0.5
    scenario.tell()
    with gpu_watch(scenario) as watch:
        watch.until(lambda: watch.of(GpuSample))
        scenario.content["events"] += [[0, XID, 45, 2**32 - 1, 2**32 - 1]] * 500
        scenario.tell()
        watch.until(lambda: sum(xid.repeats or 0 for xid in watch.of(GpuXid)) == 500)
    assert len(watch.of(GpuXid)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "data", "kind", "code"),
    [
        (DOUBLE_BIT, 0, "ecc_uncorrected", None),
        (RETIREMENT, 0, "page_retirement", None),
        (RETIREMENT_FAILURE, 0, "row_remap_failed", None),
        (RECOVERY, 2, "recovery_action", 2),
    ],
)
def test_the_drivers_other_events_are_faults(
    scenario: Scenario, event: int, data: int, kind: str, code: int | None
) -> None:
    with gpu_watch(scenario) as watch:
        watch.until(lambda: watch.of(GpuSample))
        scenario.reports(1, event, data)
        watch.until(lambda: watch.of(GpuFault))
    (fault,) = watch.of(GpuFault)
    assert (fault.kind, fault.device, fault.code, fault.source) == (kind, SECOND, code, "NVML")
    assert fault.classification is not None
    assert fault.policy is not None


@pytest.mark.slow
def test_events_that_a_gpu_does_not_know_are_not_asked_for(scenario: Scenario) -> None:
    scenario.breaks(0, event_types=XID)
    with gpu_watch(scenario) as watch:
        watch.until(lambda: watch.of(GpuSample))
        scenario.reports(0, DOUBLE_BIT)
        scenario.reports(0, XID, 48)
        watch.until(lambda: watch.of(GpuXid))
    assert not watch.of(GpuFault)
    assert states(watch) == ["healthy"]


@pytest.mark.slow
def test_a_state_that_asks_for_help_is_a_fault_told_once(scenario: Scenario) -> None:
    scenario.breaks(1, fields={"230": 1}, remapped=[0, 2, 1, 1], ecc=[5, 3])
    with gpu_watch(scenario) as watch:
        watch.until(lambda: len(watch.of(GpuSample)) > 5)
    assert kinds(watch) == [("recovery_action", SECOND), ("row_remap_failed", SECOND)]
    assert watch.of(GpuFault)[0].code == 1
    sample = next(sample for sample in watch.of(GpuSample) if sample.device == SECOND)
    assert (sample.recovery_action, sample.remapped_uncorrectable) == (1, 2)
    assert (sample.retirement_pending, sample.remap_failed) == (True, True)
    assert (sample.ecc_corrected, sample.ecc_uncorrected) == (5, 3)
    assert states(watch)[-1] == "unhealthy"


@pytest.mark.slow
@pytest.mark.parametrize(("error", "kind"), [(15, "lost"), (16, "reset_required")])
def test_a_gpu_that_says_it_is_gone_is_a_fault_until_it_is_back(
    scenario: Scenario, error: int, kind: str
) -> None:
    with gpu_watch(scenario) as watch:
        watch.until(lambda: states(watch) == ["healthy"])
        scenario.breaks(0, error=error)
        watch.until(lambda: states(watch)[-1] == "unhealthy")
        told = len(watch.of(GpuSample))
        watch.until(lambda: len(watch.of(GpuSample)) > told + 3)
        assert {sample.device for sample in watch.of(GpuSample)[told:]} == {SECOND}
        scenario.breaks(0, error=0)
        watch.until(lambda: states(watch)[-1] == "healthy")
    assert kinds(watch) == [(kind, FIRST)]


@pytest.mark.slow
def test_a_gpu_that_was_lost_before_the_start_is_named_by_its_number(scenario: Scenario) -> None:
    scenario.breaks(1, error=15)
    with gpu_watch(scenario) as watch:
        watch.until(lambda: watch.of(GpuSample))
    assert kinds(watch) == [("lost", "GPU1")]
    assert states(watch) == ["unhealthy"]


@pytest.mark.slow
def test_a_question_that_hangs_costs_the_helper_and_the_others_stay_watched(
    scenario: Scenario,
) -> None:
    with gpu_watch(scenario, deadline=1.0) as watch:
        watch.until(lambda: states(watch) == ["healthy"])
        scenario.breaks(0, hang="nvmlDeviceGetPowerUsage")
        watch.until(lambda: watch.of(GpuFault))
        told = len(watch.of(GpuSample))
        watch.until(lambda: len(watch.of(GpuSample)) > told + 3)
    assert kinds(watch) == [("query_hung", FIRST)]
    assert {sample.device for sample in watch.of(GpuSample)[told:]} == {SECOND}
    assert states(watch)[-1] == "unhealthy"


@pytest.mark.slow
def test_a_gpu_that_hung_is_asked_again_after_a_while(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "RETRY_DELAY", 1.0)
    scenario.breaks(0, hang="everything")
    with gpu_watch(scenario, deadline=1.0) as watch:
        watch.until(lambda: kinds(watch) == [("query_hung", "GPU0")])
        scenario.breaks(0, hang=None)
        watch.until(lambda: states(watch)[-1] == "healthy")
    assert kinds(watch) == [("query_hung", "GPU0")]
    assert [present.device for present in watch.of(GpuPresent)] == [SECOND, FIRST]


@pytest.mark.slow
def test_a_driver_that_hangs_at_its_start_accuses_no_gpu(scenario: Scenario) -> None:
    scenario.content["hang"] = "nvmlInitWithFlags"
    scenario.tell()
    with gpu_watch(scenario, deadline=0.3) as watch:
        watch.until(lambda: watch.of(GpuFault))
        watch.until(lambda: watch.sampler._delay > 0.2)
    assert kinds(watch) == [("query_hung", None)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"load_error": True}, "no NVIDIA driver here"),
        ({"errors": {"nvmlInitWithFlags": 9}}, "driver is not loaded"),
        ({"errors": {"nvmlInitWithFlags": 4}}, "no permission to use the NVIDIA driver"),
        ({"errors": {"nvmlInitWithFlags": 18}}, "differ in version"),
        ({"errors": {"nvmlInitWithFlags": 999}}, "NVML does not start: Unknown Error"),
        ({"gpus": []}, "lists no GPU"),
    ],
)
def test_without_a_usable_driver_the_check_is_disabled_and_says_why(
    tmp_path: Path, content: dict[str, object], words: str
) -> None:
    with gpu_watch(Scenario(tmp_path / "gpus.json", **content)) as watch:
        watch.until(lambda: watch.of(Health))
        watch.until(lambda: watch.sampler._helper is None)
    (health,) = watch.recorded.events
    assert isinstance(health, Health)
    assert health.state == "disabled"
    assert words in (health.detail or "")


@pytest.mark.slow
def test_questions_without_permission_are_named_and_no_fault(scenario: Scenario) -> None:
    scenario.breaks(0, errors={"nvmlDeviceGetPowerUsage": 4})
    scenario.breaks(1, errors={"handle": 4})
    with gpu_watch(scenario) as watch:
        watch.until(lambda: len(watch.of(GpuSample)) > 3)
    assert not watch.of(GpuFault)
    (health,) = watch.of(Health)
    assert health.state == "healthy"
    assert f"no permission to ask {FIRST} for nvmlDeviceGetPowerUsage" in (health.detail or "")
    assert "no permission to use GPU1" in (health.detail or "")
    assert {sample.power for sample in watch.of(GpuSample)} == {None}


@pytest.mark.slow
def test_a_gpu_that_may_not_be_used_any_more_is_not_lost(scenario: Scenario) -> None:
    with gpu_watch(scenario) as watch:
        watch.until(lambda: states(watch) == ["healthy"])
        scenario.breaks(1, errors={"handle": 4})
        scenario.reports(0, 0x100)  # the list is looked at again
        watch.until(lambda: "no permission" in (watch.of(Health)[-1].detail or ""))
        scenario.breaks(1, errors={})
        scenario.reports(0, 0x100)
        watch.until(lambda: watch.of(Health)[-1].detail == "2 GPUs")
    assert not watch.of(GpuFault)


@pytest.mark.slow
def test_a_gpu_that_is_not_listed_any_more_is_lost(scenario: Scenario) -> None:
    with gpu_watch(scenario) as watch:
        watch.until(lambda: states(watch) == ["healthy"])
        gone = scenario.content["gpus"].pop()
        scenario.reports(0, 0x100)
        watch.until(lambda: watch.of(GpuFault))
        scenario.content["gpus"].append(gone)
        scenario.reports(0, 0x100)
        watch.until(lambda: states(watch)[-1] == "healthy")
    (fault,) = watch.of(GpuFault)
    assert (fault.kind, fault.device) == ("lost", SECOND)
    assert fault.message == "the driver does not list it any more"


@pytest.mark.slow
def test_a_driver_that_is_unloaded_loses_no_gpu(scenario: Scenario) -> None:
    with gpu_watch(scenario) as watch:
        watch.until(lambda: states(watch) == ["healthy"])
        scenario.content["errors"] = {"nvmlInitWithFlags": 9}
        scenario.reports(0, 0x100)
        watch.until(lambda: states(watch)[-1] == "disabled")
    assert not watch.of(GpuFault)


def state_line(at: int, **state: Any) -> dict[str, Any]:
    return {"kind": "state", "at": at, "device": FIRST, "state": state, "refusals": {}}


def test_memory_errors_that_rise_are_a_fault_and_those_of_before_are_none() -> None:
    findings = Findings()
    looks = [7, 7, 9, 9, 0, 1]
    told = [
        findings.take(state_line(at * 2 * BURST, ecc_uncorrected=n)) for at, n in enumerate(looks)
    ]
    faults = [[event for event in events if isinstance(event, GpuFault)] for events in told]
    assert [len(found) for found in faults] == [0, 0, 1, 0, 0, 1]
    assert faults[2][0].message == "uncorrected memory errors rose by 2 to 9"
    assert faults[5][0].message == "uncorrected memory errors rose by 1 to 1"


def test_what_rarely_changes_is_repeated_for_those_who_came_later() -> None:
    findings = Findings()
    times = [0, REPEAT_INTERVAL - 1, REPEAT_INTERVAL, 2 * REPEAT_INTERVAL - 1, 2 * REPEAT_INTERVAL]
    samples = [findings.take(state_line(at, power=1.0, pcie_replays=3))[0] for at in times]
    once = GpuSample(device=FIRST, power=1.0)
    whole = GpuSample(device=FIRST, power=1.0, pcie_replays=3)
    assert samples == [whole, once, whole, once, whole]


def test_what_a_gpu_or_an_old_driver_cannot_say_is_unknown(scenario: Scenario) -> None:
    for number in (0, 1):
        for name in ("ecc", "remapped", "links", "fields", "pcie_replays"):
            del scenario.content["gpus"][number][name]
    new, old = "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
    scenario.content["missing"] = [new, old]
    scenario.tell()
    with gpu_watch(scenario) as watch:
        watch.until(lambda: len(watch.of(GpuSample)) > 3)
    assert watch.of(GpuSample)[0] == GpuSample(
        device=FIRST,
        temperature=40.0,
        power=350.5,
        memory_used=60 * 1024**3,
        memory_total=80 * 1024**3,
        utilization=0.97,
    )
    assert states(watch) == ["healthy"]


@pytest.mark.slow
def test_an_older_driver_knows_the_throttling_by_its_older_name(scenario: Scenario) -> None:
    scenario.content["missing"] = ["nvmlDeviceGetCurrentClocksEventReasons"]
    scenario.breaks(0, reasons=0x80)
    with gpu_watch(scenario) as watch:
        watch.until(lambda: watch.of(GpuSample))
    assert watch.of(GpuSample)[0].throttle == ("power_brake",)


def test_without_the_binding_the_check_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError")
    scenario = Scenario(tmp_path / "gpus.json")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    with gpu_watch(scenario, variables={"PYTHONPATH": path}) as watch:
        watch.until(lambda: watch.of(Health))
    (health,) = watch.of(Health)
    assert health.state == "disabled"
    assert "pip install 'headway[exporter]'" in (health.detail or "")


class Stuck:
    """A helper that hangs on a GPU and is held in the kernel however often it is killed."""

    started: ClassVar[list["Stuck"]] = []

    def __init__(self, command: Sequence[str]) -> None:
        self.said = [b'{"kind":"starting","at":0,"patience":0}']
        self.killed = False
        self.skipped = [command[at + 1] for at, word in enumerate(command) if word == "--skip"]
        self.started.append(self)
        number = len(self.started) - 1
        self.said.append(b'{"kind":"asking","at":0,"patience":0,"index":%d}' % number)

    @property
    def status(self) -> int | None:
        return None

    def lines(self) -> list[bytes] | None:
        said, self.said = self.said, []
        return said or None

    def kill(self) -> None:
        self.killed = True

    def wait(self, seconds: float) -> bool:
        return False


@pytest.mark.slow
def test_helpers_that_do_not_die_are_left_behind_and_not_piled_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampler, "HelperProcess", Stuck)
    monkeypatch.setattr(Stuck, "started", [])
    recorded = Recorded()
    seconds = 0
    watching = GpuSampler(recorded, interval=15.0, deadline=10.0, monotonic=lambda: seconds * 10**9)
    for seconds in range(24 * 3600):  # noqa: B007  # the clock
        watching.poll()
    assert [helper.skipped for helper in Stuck.started] == [[], ["0"], ["0", "1"], ["0", "1", "2"]]
    assert all(helper.killed for helper in Stuck.started)
    assert kinds_of(recorded) == [("query_hung", f"GPU{number}") for number in range(4)]
    watching.close()


@pytest.mark.slow
def test_gpus_in_another_order_and_new_slices_are_listed_anew(
    scenario: Scenario,
) -> None:
    with gpu_watch(scenario) as watch:
        watch.until(lambda: states(watch) == ["healthy"])
        first, second = scenario.content["gpus"]
        first["slices"], first["most_slices"] = ["MIG-1"], 7
        scenario.content["gpus"] = [second, first]
        scenario.reports(0, 0x100)  # the driver says that its slices changed
        watch.until(lambda: len(watch.of(GpuPresent)) == 4)
    anew = watch.of(GpuPresent)[2:]
    assert [(found.device, found.index) for found in anew] == [(SECOND, 0), (FIRST, 1)]
    assert (anew[1].slices, anew[1].instances) == (("MIG-1",), ("2/0",))
    assert not watch.of(GpuFault)


@pytest.mark.slow
def test_a_helper_that_dies_is_started_again(scenario: Scenario) -> None:
    with gpu_watch(scenario) as watch:
        watch.until(lambda: watch.of(GpuSample))
        helper = watch.sampler._helper
        assert helper is not None
        os.kill(helper._process.pid, signal.SIGKILL)
        watch.until(lambda: watch.sampler._helper not in (None, helper))
        told = len(watch.of(GpuSample))
        watch.until(lambda: len(watch.of(GpuSample)) > told)
    assert not watch.of(GpuFault)
    assert len(watch.of(GpuPresent)) == 2


@pytest.mark.slow
def test_the_kernels_line_wins_over_the_drivers_xid(scenario: Scenario) -> None:
    kernel = KernelXids(Recorded())
    kernel.node_event(GpuXid(code=79, device="0000:1B:00"), monotonic=time.monotonic_ns())
    with gpu_watch(scenario, kernel=kernel) as watch:
        watch.until(lambda: watch.of(GpuSample))
        scenario.reports(0, XID, 79)
        scenario.reports(0, XID, 48)
        watch.until(lambda: watch.of(GpuXid))
    assert [xid.code for xid in watch.of(GpuXid)] == [48]


@pytest.mark.slow
def test_the_burst_of_one_fault_is_one(scenario: Scenario) -> None:
    with gpu_watch(scenario) as watch:
        watch.until(lambda: watch.of(GpuSample))
        scenario.reports(0, DOUBLE_BIT)
        scenario.reports(0, DOUBLE_BIT)
        scenario.reports(0, XID, 48)
        watch.until(lambda: watch.of(GpuXid))
    assert kinds(watch) == [("ecc_uncorrected", FIRST)]
