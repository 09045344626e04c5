"""Every wrapping of a kernel message, and lines that the kernel did not write."""

import json
from datetime import datetime

import pytest

from headway.events import GpuFault, GpuXid
from headway.kernel_log.log import Finding, KernelLog
from headway.kernel_log.oom import OomKill
from headway.kernel_log.stamps import Clock

XID = "NVRM: Xid (PCI:0000:01:00): 79, pid=9, name=a, GPU has fallen off the bus."
SECOND = 10**9
BOOT = 1_760_000_000 * SECOND


def read(*lines: str) -> list[Finding]:
    log = KernelLog(Clock(boot=BOOT, year=2026))
    return [finding for line in lines for finding in log.feed(line + "\n")] + log.finish()


def at(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1e6) * 1_000


@pytest.mark.parametrize(
    ("line", "time"),
    [
        (XID, None),
        (f"[   12.500000] {XID}", BOOT + 12_500_000_000),
        (f"<3>[   12.500000] {XID}", BOOT + 12_500_000_000),
        (f"[Tue Sep  8 10:00:01 2026] {XID}", at("2026-09-08T10:00:01Z")),
        (f"Sep  8 10:00:01 node-1 kernel: {XID}", at("2026-09-08T10:00:01Z")),
        (f"sept. 8 10:00:01 node-1 kernel: {XID}", at("2026-09-08T10:00:01Z")),
        (f"2026-09-08T10:00:01.250+02:00 node-1 kernel: {XID}", at("2026-09-08T08:00:01.250Z")),
        (f"2026-09-08T10:00:01,250+0200 {XID}", at("2026-09-08T08:00:01.250Z")),
        (f"2026-09-08 10:00:01 UTC node-1 kernel: {XID}", at("2026-09-08T10:00:01Z")),
        (f"Tue 2026-09-08 10:00:01 UTC node-1 kernel: {XID}", at("2026-09-08T10:00:01Z")),
        (f"kern  :err   : 2026-09-08T10:00:01,250000+00:00 {XID}", at("2026-09-08T10:00:01.25Z")),
        (f"kern  :err   : [   12.500000] {XID}", BOOT + 12_500_000_000),
        (
            f"10.0.0.7: kern: warning: [2026-09-08T10:00:01.25Z]: {XID}",
            at("2026-09-08T10:00:01.25Z"),
        ),
        (f"Sep  8 10:00:01 node-1 kernel: [   12.500000] {XID}", BOOT + 12_500_000_000),
        (f"6,1234,12500000,-;{XID}", BOOT + 12_500_000_000),
        (f"3,1234,12500000,-,caller=T99;{XID}", BOOT + 12_500_000_000),
        (f"\x1b[32m[   12.500000] \x1b[0m\x1b[31m{XID}\x1b[0m", BOOT + 12_500_000_000),
        (f"MESSAGE={XID}", None),
        (f"\0\0\0Sep  8 10:00:01 node-1 kernel: {XID}", at("2026-09-08T10:00:01Z")),
        (f"\ufeffSep  8 10:00:01 node-1 kernel: {XID}", at("2026-09-08T10:00:01Z")),
        (f"[gpu-health] [WARN] GPU-7: XID: {XID}", None),
    ],
)
def test_a_message_is_found_behind_every_prefix(line: str, time: int | None) -> None:
    (found,) = read(line)

    assert isinstance(found.report, GpuXid)
    assert (found.report.code, found.report.process) == (79, "a")
    assert found.time == time


@pytest.mark.parametrize(
    "line",
    [
        f"Sep  8 10:00:01 node-1 python[123]: {XID}",
        f"Sep  8 10:00:01 node-1 monitor: {XID}",
        f"2026-09-08T10:00:01Z node-1 gpud[9]: {XID}",
        f"Sep  8 10:00:01 node-1 kernel: audit: comm={XID}",
        f'the log says "{XID}"',
        f"14,1234,12500000,-;{XID}",  # facility 1: a program wrote into the kernel's buffer
        "Sep  8 10:00:01 node-1 python[1]: Out of memory: Killed process 7 (a)",
    ],
)
def test_what_another_program_wrote_or_quotes_is_not_the_kernels(line: str) -> None:
    assert read(line) == []


def test_an_entry_of_the_journal_has_the_kernels_own_time() -> None:
    entry = {
        "__CURSOR": "s=1;i=2",
        "__REALTIME_TIMESTAMP": "1788861601000000",
        "__MONOTONIC_TIMESTAMP": "20000000",
        "_SOURCE_MONOTONIC_TIMESTAMP": "12500000",
        "_TRANSPORT": "kernel",
        "SYSLOG_IDENTIFIER": "kernel",
        "MESSAGE": XID,
    }

    (as_json,) = read(json.dumps(entry))
    (as_export,) = read(*(f"{name}={value}" for name, value in entry.items()), "", "")

    assert as_json.time == (1_788_861_601_000_000 - 7_500_000) * 1_000
    assert as_json.monotonic == 12_500_000_000
    assert as_export.time == as_json.time
    assert as_export.report.line == f"MESSAGE={XID}"  # type: ignore[union-attr]


def test_a_message_of_bytes_in_the_journal_is_read() -> None:
    (found,) = read(json.dumps({"_TRANSPORT": "kernel", "MESSAGE": list(XID.encode())}))

    assert isinstance(found.report, GpuXid)


@pytest.mark.parametrize("before", ["\x1e", "data: "])
def test_an_entry_is_read_in_every_form_of_json_that_keeps_it_on_a_line(before: str) -> None:
    entry = {"__REALTIME_TIMESTAMP": "1788861601000000", "MESSAGE": XID}

    (found,) = read(before + json.dumps(entry))

    assert found.time == 1_788_861_601 * SECOND


def test_a_message_of_bytes_in_the_export_format_keeps_its_time() -> None:
    text = "NVRM: Xid (PCI:0000:01:00): 31, pid=9, name=\ufffd, MMU Fault"

    (found,) = read(
        "__CURSOR=1",
        "__REALTIME_TIMESTAMP=1788861601000000",
        "MESSAGE",
        f";\0\0\0\0\0\0\0{text}",
        "_TRANSPORT=kernel",
        "",
    )

    assert found.time == 1_788_861_601 * SECOND
    assert found.line == f"MESSAGE={text}"


@pytest.mark.parametrize(
    "entry",
    [
        {"_TRANSPORT": "syslog", "MESSAGE": XID},
        {"_TRANSPORT": "stdout", "SYSLOG_IDENTIFIER": "train", "MESSAGE": XID},
        {"SYSLOG_IDENTIFIER": "train", "MESSAGE": XID},
        {"MESSAGE": None},
        {"MESSAGE": ["no", "bytes"]},
        {"log": XID},
    ],
)
def test_an_entry_that_the_kernel_did_not_write_is_left_out(entry: dict[str, object]) -> None:
    assert read(json.dumps(entry)) == []


def test_an_entry_of_another_program_in_the_export_format_is_left_out() -> None:
    found = read(
        "__CURSOR=1", f"MESSAGE={XID}", "_TRANSPORT=stdout", "", "__CURSOR=2", f"MESSAGE={XID}"
    )

    assert len(found) == 1


def test_a_message_of_several_lines_is_read_whole() -> None:
    text = (
        "NVRM: The NVIDIA GPU 0000:cb:00.0\\x0aNVRM: (PCI ID: 10de:26b5) installed in this system "
        "has\\x0aNVRM: fallen off the bus and is not responding to commands."
    )

    (found,) = read(f"3,77,12500000,-;{text}")

    assert isinstance(found.report, GpuFault)
    assert found.report.device == "0000:cb:00"


def test_the_loggers_count_of_repeats_is_kept() -> None:
    (found,) = read(f"Sep  8 10:00:01 node-1 kernel: message repeated 13 times: [ {XID}]")

    assert found.repeats == 13
    assert isinstance(found.report, GpuXid)
    assert found.report.message == "GPU has fallen off the bus."


def test_a_process_killed_for_memory_is_found_beside_the_gpus() -> None:
    (found,) = read(
        "[   12.500000] Memory cgroup out of memory: Killed process 4242 (python3) "
        "total-vm:900kB, anon-rss:800kB, file-rss:1kB, shmem-rss:0kB, UID:0"
    )

    assert isinstance(found.report, OomKill)
    assert (found.report.process_id, found.report.name) == (4242, "python3")
    assert found.time == BOOT + 12_500_000_000
