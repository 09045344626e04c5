"""Lines that were cut, doubled, spliced and garbled: no exception, and no Xid that is not there."""

import random
import re

import pytest

from headway.events import GpuSxid, GpuXid
from headway.kernel_log.bursts import Bursts
from headway.kernel_log.log import KernelLog
from headway.kernel_log.stamps import Clock
from published_lines import LINES, NO_XID

_SIGNS = " ()[]{}:;,.'\"\\=<>-_#\t\x00\x1b\u0131\u6708\U0001f525" + "0123456789abcdefxXNVRMPCIidn"
_FEW, _MANY = 4_000, 1_000_000


def _garbled(chance: random.Random, line: str) -> str:
    for _ in range(chance.randint(1, 4)):
        begin = chance.randrange(len(line) + 1)
        end = min(len(line), begin + chance.randrange(1, 24))
        match chance.randrange(7):
            case 0:
                line = line[:begin] + line[end:]
            case 1:
                line = line[:end] + line[begin:]
            case 2:
                line = line[:begin] + chance.choice(_SIGNS) + line[begin:]
            case 3:
                line = line[:begin] + "".join(chance.choices(_SIGNS, k=end - begin)) + line[end:]
            case 4:
                line = line[:begin]
            case 5:
                other = chance.choice(LINES)
                line = line[:begin] + other[chance.randrange(len(other)) :]
            case _:
                line = line[:begin] + line[begin:end] * chance.randrange(2, 40) + line[end:]
    return line


def _said(line: str, word: str, code: int) -> bool:
    """Return whether a line holds the whole skeleton of a report of this code."""
    return re.search(rf"{word} ?\s*\([^()]+\):\s*0*{code}(?!\d)", line) is not None


def _check(count: int, seed: int) -> int:
    chance = random.Random(seed)  # noqa: S311  # to be the same each time
    log, bursts = KernelLog(Clock(year=2025)), Bursts(most_kept=64)
    xids = 0
    for _ in range(count):
        base = chance.choice(LINES)
        line = _garbled(chance, base)
        for finding in log.feed(line):
            report = finding.report
            if isinstance(report, GpuXid):
                assert _said(finding.line, "Xid", report.code), line
                xids += 1
            elif isinstance(report, GpuSxid):
                assert _said(finding.line, "SXid", report.code), line
            bursts.add(finding)
        bursts.pop()
    return xids


def test_garbled_lines_raise_nothing_and_hold_no_false_xid() -> None:
    assert _check(_FEW, seed=1) > _FEW // 10


@pytest.mark.slow
def test_a_million_garbled_lines_raise_nothing_and_hold_no_false_xid() -> None:
    assert _check(_MANY, seed=2) > _MANY // 10


def test_garbling_a_line_without_an_xid_makes_none() -> None:
    chance = random.Random(3)  # noqa: S311  # to be the same each time
    lines = [LINES[number - 1] for number in NO_XID]
    for _ in range(_FEW):
        line = chance.choice(lines)
        cut = chance.randrange(len(line) + 1)
        line = line[:cut] + "".join(chance.choices(_SIGNS, k=3)) + line[cut + chance.randrange(4) :]

        found = KernelLog(Clock()).feed(line)

        assert not [each for each in found if isinstance(each.report, GpuXid)], line


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (" * 100_000,
        "NVRM:" + " " * 1_000_000 + "Xid (PCI:0000:01:00): 79, ",
        "[" * 1_000_000,
        "[ 1.0]" * 100_000 + " NVRM: Xid (PCI:0000:01:00): 79, ",
        "Sep " * 100_000 + "NVRM: Xid (PCI:0000:01:00): 79, ",
        "NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=" + "a," * 500_000,
        "NVRM: Xid (PCI:0000:01:00): 45, " + "caused by previous Xid " * 50_000,
        "{" * 100_000,
        '{"MESSAGE":' * 10_000,
        "oom-kill:constraint=CONSTRAINT_MEMCG," + ",task=" * 100_000,
        "6,1,1,-;" + "\\x0aNVRM: The NVIDIA GPU 0000:cb:00.0" * 10_000,
    ],
)
def test_a_line_made_to_take_long_is_read_to_its_limit_only(line: str) -> None:
    assert len(KernelLog(Clock()).feed(line)) <= 1
