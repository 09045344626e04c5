"""What the faults of a GPU say together: repeats, places, reboots that do not help."""

import pytest

from headway.events import GpuXid
from headway.gpu_faults.history import DAY, PastFault, findings
from headway.gpu_faults.policy import classified

SECOND = 10**9
HOUR = 3600 * SECOND
NOW = 10 * DAY


def fault(
    hours_ago: float, code: int, gpu: str = "GPU-a", message: str = "", boot_id: str | None = None
) -> PastFault:
    xid = classified(GpuXid(code=code, device=gpu, message=message))
    return PastFault(time=NOW - round(hours_ago * HOUR), gpu=gpu, fault=xid, boot_id=boot_id)


def rules(*faults: PastFault) -> list[tuple[str, str]]:
    return [(finding.rule, finding.gpu) for finding in findings(faults, NOW)]


def test_five_severe_faults_of_a_gpu_within_a_day_are_too_many() -> None:
    five = [
        fault(hours, code) for hours, code in zip(range(1, 6), (48, 95, 119, 74, 109), strict=True)
    ]

    assert rules(*five) == [("repeated_severe", "GPU-a")]
    assert rules(*five[:4]) == []
    assert rules(*five[:4], fault(25, 48)) == []
    assert rules(*five[:4], fault(5, 48, gpu="GPU-b")) == []
    assert rules(*five[:4], fault(5, 13), fault(6, 63), fault(7, 45)) == []


def test_a_burst_of_severe_faults_counts_once() -> None:
    minute = 1 / 60
    burst = [fault(3 + part * minute, 48) for part in (0, 1, 2)]

    assert rules(*burst, fault(5, 48), fault(6, 48), fault(7, 48)) == []
    assert rules(*burst, fault(5, 48), fault(6, 48), fault(7, 48), fault(8, 48)) == [
        ("repeated_severe", "GPU-a")
    ]


def test_page_faults_of_one_gpu_alone_accuse_it_and_of_several_the_program() -> None:
    assert rules(fault(1, 31)) == []
    assert rules(fault(1, 31), fault(5, 31)) == [("same_gpu_page_fault", "GPU-a")]
    assert rules(fault(1, 31), fault(1, 31, gpu="GPU-b")) == [
        ("many_gpus_page_fault", "GPU-a"),
        ("many_gpus_page_fault", "GPU-b"),
    ]
    assert rules(fault(1, 31), fault(30, 31)) == []


def test_exceptions_at_one_place_accuse_the_gpu_and_at_changing_places_the_program() -> None:
    def at(hours: float, gpc: int, tpc: int) -> PastFault:
        words = f"Graphics SM Warp Exception on (GPC {gpc}, TPC {tpc}, SM 0): Illegal Address"
        return fault(hours, 13, message=words)

    assert rules(at(1, 7, 7)) == []
    assert rules(at(1, 7, 7), at(2, 7, 7)) == [("same_place_exception", "GPU-a")]
    assert rules(at(1, 7, 7), at(2, 3, 7)) == [("many_places_exception", "GPU-a")]
    assert rules(at(1, 7, 7), at(2, 3, 7), at(3, 7, 7)) == [("same_place_exception", "GPU-a")]
    assert rules(at(1, 7, 7), at(1 + 10 / 3600, 7, 7)) == []  # one burst of 15 s
    assert rules(fault(1, 13), fault(2, 13)) == []  # no place, nothing said


def test_an_xid_that_comes_back_after_two_reboots_asks_for_inspection() -> None:
    back = [fault(90 - boot, 79, boot_id=f"boot {boot}") for boot in range(3)]

    (finding,) = findings(back, NOW)

    assert finding.rule == "uncleared_reboots"
    assert finding.advice == (
        "Xid 79 came back after 2 reboots: have the hardware inspected or replaced"
    )
    assert len(finding.faults) == 3
    assert rules(*back[:2]) == []
    assert rules(*back[:2], fault(1, 79, boot_id="boot 1")) == []
    assert rules(*back[:2], fault(1, 48, boot_id="boot 2")) == []
    assert rules(*back[:2], fault(1, 79)) == []  # of an unknown boot


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 13_104])
def test_cleanups_after_a_fault_never_count(count: int) -> None:
    assert rules(*(fault(hours / 1000, 45, boot_id=str(hours)) for hours in range(count))) == []


def test_the_order_of_the_faults_does_not_matter() -> None:
    faults = [
        *(fault(hour, 48) for hour in range(1, 7)),
        *(fault(hour, 31, gpu=f"GPU-{hour}") for hour in range(1, 4)),
    ]

    assert findings(faults, NOW) == findings(reversed(faults), NOW)
