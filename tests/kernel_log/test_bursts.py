"""What is one fault and what are two: lines of a burst united, in streams of any length."""

import random
from collections.abc import Iterable

from headway.events import GpuFault, GpuSxid, GpuXid
from headway.kernel_log.bursts import Bursts
from headway.kernel_log.log import Finding, KernelLog
from headway.kernel_log.oom import OomKill
from headway.kernel_log.stamps import Clock

SECOND = 10**9


def xid(seconds: float, code: int, words: str = "Ch 1", device: str = "0000:01:00") -> str:
    return f"[{seconds:12.6f}] NVRM: Xid (PCI:{device}): {code}, {words}"


def united(lines: Iterable[str], most_kept: int = 4096) -> list[Finding]:
    log, bursts = KernelLog(Clock(boot=0)), Bursts(most_kept)
    found = []
    for line in lines:
        for finding in log.feed(line):
            bursts.add(finding)
        found += bursts.pop()
    return found + bursts.pop_all()


def told(findings: Iterable[Finding]) -> list[tuple[object, float | None, int]]:
    return [
        (
            getattr(each.report, "code", None) or getattr(each.report, "kind", "oom"),
            None if each.time is None else each.time / SECOND,
            each.repeats,
        )
        for each in findings
    ]


def test_a_gpu_off_the_bus_in_two_forms_is_one_fault_for_five_minutes() -> None:
    second_form = "NVRM: GPU 0000:01:00.0: GPU has fallen off the bus."

    found = united(
        [
            xid(100, 79),
            f"[  101.000000] {second_form}",
            xid(399, 79),
            xid(401, 79, device="0000:02:00"),
        ]
    )

    assert told(found) == [(79, 100, 3), (79, 401, 1)]
    assert isinstance(found[0].report, GpuXid)
    assert found[0].report.repeats == 3


def test_the_form_with_a_number_wins_when_it_comes_second() -> None:
    (found,) = united(
        ["[  100.000000] NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.", xid(101, 79)]
    )

    assert isinstance(found.report, GpuXid)
    assert found.time == 100 * SECOND
    assert found.report.line == found.line


def test_a_storm_of_cleanups_is_one_event_per_gpu() -> None:
    lines = [
        xid(
            100 + number / 1000,
            45,
            f"pid={number}, name=a, Ch {number:08x}",
            f"0000:0{number % 2}:00",
        )
        for number in range(13_104)
    ]

    found = united(lines)

    assert told(found) == [(45, 100, 6552), (45, 100.001, 6552)]


def test_an_exception_that_comes_back_after_the_burst_is_a_second_fault() -> None:
    found = united([xid(100, 13), xid(110, 13), xid(124.9, 13), xid(140, 13)])

    assert told(found) == [(13, 100, 3), (13, 140, 1)]


def test_a_burst_that_does_not_end_is_told_in_parts() -> None:
    found = united(xid(seconds, 31) for seconds in range(0, 1000, 10))

    assert [part[2] for part in told(found)] == [31, 31, 31, 7]


def test_different_places_and_different_verdicts_are_different_faults() -> None:
    action = "GPU recovery action changed from 0x0 (None) to 0x{} (words)"
    link = "NETIR_LINK_EVT {} XC0 i0 Link 0 (0x025001c6 0x00000000 0x0)"

    found = united(
        [
            xid(100, 94),
            xid(100, 94, device="0000:02:00"),
            xid(100, 94, device="0000:01:00 GPU-I:05"),
            xid(100, 154, action.format(1)),
            xid(100, 154, action.format(2)),
            xid(100, 149, link.format("Fatal")),
            xid(100, 149, link.format("Nonfatal")),
        ]
    )

    assert [each.repeats for each in found] == [1] * 7


def test_the_lines_of_a_switch_error_are_one_event_that_knows_them_all() -> None:
    mark = "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034,"

    (found,) = united(
        [
            f"[  100.000000] {mark} Data {{0x1}}",
            f"[  100.000100] {mark} Fatal, Link 48 LTSSM Fault Up",
            f"[  100.000200] {mark} Severity 1 Engine instance 60",
        ]
    )

    assert isinstance(found.report, GpuSxid)
    assert (found.report.fatal, found.report.link, found.report.repeats) == (True, 48, 3)


def test_the_lines_of_a_kill_are_one_that_knows_them_all() -> None:
    (found,) = united(
        [
            "[  100.000000] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,"
            "mems_allowed=0,oom_memcg=/job,task_memcg=/job/7,task=python3,pid=4242,uid=0",
            "[  100.000100] Memory cgroup out of memory: Killed process 4242 (python3) "
            "total-vm:9kB, anon-rss:8kB",
            "[  100.200000] oom_reaper: reaped process 4242 (python3), now anon-rss:0kB",
        ]
    )

    assert isinstance(found.report, OomKill)
    assert (found.report.cgroup, found.report.limited, found.repeats) == ("/job/7", True, 3)


def test_lines_without_any_time_belong_together_as_long_as_nothing_parts_them() -> None:
    line = "NVRM: Xid (PCI:0000:01:00): 45, Ch 1"

    assert told(united([line] * 500)) == [(45, None, 500)]


def test_a_fault_that_two_logs_of_one_file_tell_is_one() -> None:
    first = [xid(100, 79), xid(9_000, 79), xid(9_500, 31)]
    second = ["[  101.000000] NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.", xid(9_001, 79)]

    assert told(united([*first, *second])) == [(79, 100, 2), (79, 9_000, 2), (31, 9_500, 1)]


def test_memory_is_bounded_whatever_the_log_holds() -> None:
    lines = [xid(100, 31, device=f"{number:04x}:01:00") for number in range(1000)]
    bursts = Bursts(most_kept=8)
    log = KernelLog(Clock(boot=0))

    held = []
    told_early = 0
    for line in lines:
        for finding in log.feed(line):
            bursts.add(finding)
        told_early += len(bursts.pop())
        held.append(1000 - told_early)

    assert told_early == 992
    assert len(bursts.pop_all()) == 8


def test_the_order_of_findings_is_that_of_their_first_lines() -> None:
    chance = random.Random(4)  # noqa: S311  # to be the same each time
    seconds = sorted(chance.uniform(0, 5000) for _ in range(400))
    lines = [
        xid(second, chance.choice((13, 31, 45, 79)), device=f"0000:0{chance.randrange(8)}:00")
        for second in seconds
    ]

    found = united(lines)

    times = [each.time for each in found]
    assert times == sorted(times, key=lambda time: time or 0)
    assert sum(each.repeats for each in found) == len(lines)


def test_a_fault_without_a_gpu_is_kept_apart_from_one_with_it() -> None:
    found = united(
        [
            "[  100.000000] NVRM: fallen off the bus and is not responding to commands.",
            "[  100.000000] NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.",
        ]
    )

    assert [each.report.device for each in found if isinstance(each.report, GpuFault)] == [
        None,
        "0000:01:00",
    ]
