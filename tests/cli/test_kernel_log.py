"""`headway import kernel-log`: from a file of mixed lines to faults, printed or sent."""

import gzip
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway import cli
from headway.events import GpuXid
from otlp_endpoint import OtlpEndpoint, otlp_endpoint
from published_lines import LINES

SECOND = 10**9
_STAMPED = 1_788_861_601 * SECOND  # 2026-09-08T10:00:01Z

MIXED = """\
[Tue Sep  8 10:00:01 2026] NVRM: Xid (PCI:0000:01:00): 79, pid=9, name=a, GPU has fallen off the bus.
[Tue Sep  8 10:00:01 2026] NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.
Sep  8 10:00:02 node-1 kernel: NVRM: Xid (PCI:0000:01:00): 45, pid=9, name=a, Ch 00000001
Sep  8 10:00:02 node-1 kernel: NVRM: Xid (PCI:0000:01:00): 45, pid=9, name=a, Ch 00000002
Sep  8 10:00:02 node-1 python[9]: NVRM: Xid (PCI:0000:02:00): 48, quoted by a program
kern  :err   : 2026-09-08T10:00:03,500000+00:00 nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up
kern  :err   : 2026-09-08T10:00:03,500001+00:00 nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Severity 1 Engine instance 60
[  100.500000] NVRM: Xid (PCI:0000:03:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)
6,1234,200500000,-;NVRM: Xid (PCI:0000:04:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9). RST: No, D-RST: No
{"_TRANSPORT": "kernel", "__REALTIME_TIMESTAMP": "1788861604000000", "MESSAGE": "NVRM: Xid (PCI:0005:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x0)"}
2026-09-08T10:00:05Z node-1 kernel: Memory cgroup out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:8kB
nothing of interest
"""  # noqa: E501  # kernel lines are as long as they are


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "kern.log"
    path.write_text(MIXED, encoding="utf-8")
    return path


@pytest.fixture
def collector() -> Iterator[OtlpEndpoint]:
    with otlp_endpoint() as endpoint:
        yield endpoint


def printed(capsys: pytest.CaptureFixture[str], *command: str) -> list[dict[str, Any]]:
    assert cli.main(["import", "kernel-log", *command, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_mixed_log_is_printed_as_its_united_faults(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, str(log), "--year", "2026", "--boot", "2026-09-08T09:00:00Z")

    boot = _STAMPED - 3_601 * SECOND
    rows = [
        (row["kind"], row["code"], row["device"], row["time"], row["class"], row["repeats"])
        for row in found
    ]
    assert rows == [
        ("xid", 79, "0000:01:00", _STAMPED, "reboot", 2),
        ("xid", 45, "0000:01:00", _STAMPED + SECOND, "consequence", 2),
        ("sxid", 20034, "0000:06:00", _STAMPED + 2_500_000_000, "reset", 2),
        ("xid", 154, "0000:03:00", boot + 100_500_000_000, "reboot", 1),
        ("xid", 94, "0000:04:00", boot + 200_500_000_000, "application", 1),
        ("xid", 149, "0005:01:00", _STAMPED + 3 * SECOND, "reset", 1),
        ("oom_kill", None, None, _STAMPED + 4 * SECOND, None, 1),
    ]
    assert {row["policy"] for row in found[:-1]} == {"headway 2026.11"}
    assert [row["line"] for row in found[:2]] == [MIXED.splitlines()[0], MIXED.splitlines()[2]]
    assert (found[0]["process"], found[0]["process_id"]) == ("a", 9)
    assert found[2]["link"] == 48
    assert found[3]["recovery_action"] == 2
    assert found[4]["gpu_instance"] == 5
    assert found[5]["sub_code"] == 37
    assert (found[6]["process"], found[6]["process_id"]) == ("python3", 4242)


def test_times_that_nothing_fills_in_stay_unknown(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, str(log))

    assert [row["time"] for row in found if row["code"] in (154, 94)] == [None, None]
    assert [row["monotonic"] for row in found if row["code"] == 154] == [100_500_000_000]


@pytest.mark.slow
def test_the_year_is_that_of_the_files_last_change(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.write_text("Dec 31 10:00:00 n kernel: " + LINES[7].partition("] ")[2], encoding="utf-8")
    os.utime(log, ns=(_STAMPED, _STAMPED))

    (row,) = printed(capsys, str(log))

    assert row["time"] == 1_767_175_200 * SECOND  # 2025-12-31T10:00:00Z


def test_a_zone_moves_the_stamps_that_name_none(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for zone in ("+02:00", "Europe/Berlin"):
        found = printed(capsys, str(log), "--zone", zone, "--year", "2026")
        assert found[0]["time"] == _STAMPED - 7_200 * SECOND
        assert [row["time"] for row in found if row["code"] == 149] == [_STAMPED + 3 * SECOND]


def test_every_published_line_is_printed_or_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "published.log"
    log.write_text("\n".join(LINES) + "\n", encoding="utf-8")

    found = printed(capsys, str(log), "--year", "2025")

    assert sum(row["repeats"] for row in found) == 64  # 69 lines, 5 of which are no fault
    assert [row["device"] for row in found if row["code"] == 137] == ["0000:4c:00", None]


def test_people_get_a_table(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["import", "kernel-log", str(log), "--year", "2026"]) == 0

    said = capsys.readouterr().out.splitlines()
    assert said[0].split() == ["time", "(UTC)", "fault", "device", "class", "process"]
    assert said[1].split() == [
        "2026-09-08",
        "10:00:01",
        "xid",
        "79",
        "x2",
        "0000:01:00",
        "reboot",
        "a",
    ]
    assert said[4].startswith("boot + 100.5 s")
    assert said[-1] == "classified by the policy headway 2026.11"
    assert max(len(line) for line in said) <= 100


def test_a_log_without_faults_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "kern.log"
    log.write_bytes(b"\xff\xfe no text \x00" * 100_000)

    assert cli.main(["import", "kernel-log", str(log)]) == 0
    assert capsys.readouterr().out == f"no GPU fault and no memory kill in {log}\n"


def test_the_standard_input_is_read_like_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = io.BufferedReader(io.BytesIO(MIXED.encode()))  # type: ignore[arg-type]  # it is raw, too
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(pipe))

    assert printed(capsys, "-")[0]["code"] == 79


def test_a_log_that_its_rotation_has_packed_is_read_like_a_plain_one(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "kern.log.2.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))

    assert printed(capsys, str(packed), "--year", "2026") == printed(
        capsys, str(log), "--year", "2026"
    )


def test_a_packed_log_that_was_cut_is_refused_in_words(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "kern.log.2.gz"
    packed.write_bytes(gzip.compress(log.read_bytes())[:-20])

    assert cli.main(["import", "kernel-log", str(packed)]) == 2
    assert f"cannot unpack the log '{packed}' to its end" in capsys.readouterr().err


def test_a_sites_own_policy_judges_under_its_own_name(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('name = "site"\nversion = "3"\n[xid]\n79 = "replace"\n', encoding="utf-8")

    found = printed(capsys, str(log), "--gpu-policy", str(policy))

    assert (found[0]["class"], found[0]["policy"]) == ("replace", "site 3")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["/no/such/log"], "cannot read the log '/no/such/log': No such file or directory"),
        (["/dev/null"], "'/dev/null' is a device, which never ends"),
        (["{log}", "--year", "26"], "the year must be 1970 to 2261, got '26'"),
        (["{log}", "--year", "last"], "cannot read the year 'last'"),
        (["{log}", "--zone", "Mars/Base"], "unknown time zone 'Mars/Base'"),
        (["{log}", "--zone", "+2h"], "unknown time zone '+2h'"),
        (["{log}", "--boot", "yesterday"], "cannot read the time 'yesterday'"),
        (["{log}", "--gpu-policy", "/no/policy"], "cannot read the policy for GPU faults"),
        (["{log}", "--ship", " "], "the name of the node is empty"),
    ],
)
def test_a_wrong_use_is_refused_in_words(
    log: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    command = [option.replace("{log}", str(log)) for option in options]

    assert cli.main(["import", "kernel-log", *command]) == 2
    assert words in capsys.readouterr().err


def test_faults_are_sent_as_the_nodes_own_and_a_second_time_under_the_same_names(
    log: Path, collector: OtlpEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", "kernel-log", str(log), "--year", "2026", "--ship", "node-1"]
    assert cli.main([*command, "--endpoint", collector.address]) == 0
    first = list(collector.accepted)
    with log.open("a", encoding="utf-8") as file:
        file.write("Sep  8 11:00:00 node-1 kernel: NVRM: Xid (PCI:0000:07:00): 48, DBE\n")
    assert cli.main([*command, "--endpoint", collector.address]) == 0
    second = collector.accepted[len(first) :]

    assert [(each.node, each.run, each.first_sequence) for each in first] == [
        ("node-1", None, 1)
    ] * 4
    assert first[0].anchor + first[0].monotonic == _STAMPED
    assert isinstance(first[0].event, GpuXid)
    assert first[0].event.classification == "reboot"
    assert [each.producer for each in second[:4]] == [each.producer for each in first]
    assert len(second) == 5
    said = capsys.readouterr().err
    assert f"the collector at {collector.address} has 4 faults of node node-1" in said
    assert "2 faults of unknown time left out; see --year and --boot" in said
