"""PyTorch's NCCL watchdog, wordings of torch 1.13 to 2.9.

A collective that timed out hung for as long as the line says before it; one incident prints a line
for each rank and process group.
"""

import re

from headway.importing.rules import Format, Rule
from headway.importing.sayings import Broke, Remark, Saying

_MILLISECOND = 10**6
_TIMEOUT = re.compile(
    r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d{1,15}), OpType=(\w{1,40})"
    r"(?:, NumelIn=(\d{1,18}))?[^)]{0,200}?Timeout\(ms\)=(\d{1,15})\) "
    r"ran for (\d{1,15}) milliseconds"
)
_RANK = re.compile(r"\[(?:PG [^\]]{0,120})?Rank (\d{1,9})\]")
_PREFIX = re.compile(r"\[rank(\d{1,9})\]")
_COMPLETED = re.compile(
    r"at work(?: sequence id)?: (\d{1,15})\b.{0,60}last enqueued (?:NCCL )?work: (-?\d{1,15}), "
    r"last completed (?:NCCL )?work: (-?\d{1,15})"
)
_TERMINATED = re.compile(r"watchdog thread terminated with exception: (.{1,500})", re.IGNORECASE)


def _rank(line: str) -> int | None:
    found = _RANK.search(line) or _PREFIX.search(line)
    return None if found is None else int(found[1])


def _timeout(line: str) -> Saying | None:
    found = _TIMEOUT.search(line)
    if found is None:
        return None
    return Broke(
        kind="collective_timeout",
        message=found[0],
        rank=_rank(line),
        ran_for=int(found[5]) * _MILLISECOND,
        timeout=int(found[4]) * _MILLISECOND,
        collective=(found[2], int(found[1])),
        elements=None if found[3] is None else int(found[3]),
    )


def _state(line: str) -> Saying | None:
    found = _COMPLETED.search(line)
    if found is None:
        return None
    return Remark(kind="collective", text=f"{_rank(line)} {found[1]} {found[3]}")


def _hung(line: str) -> Saying | None:
    return Broke(kind="hang", message=line.strip()[:500], rank=_rank(line))


def _terminated(line: str) -> Saying | None:
    found = _TERMINATED.search(line)
    if found is None or "Watchdog caught collective operation timeout" in found[1]:
        return None
    return Broke(kind="exception", message=found[1].strip(), rank=_rank(line))


FORMAT = Format(
    name="nccl",
    is_training=False,
    rules=(
        Rule("Watchdog caught collective", _timeout),
        Rule("last completed", _state),
        Rule("thread terminated with exception", _terminated),
        Rule("Heartbeat monitor timed out", _hung),
        Rule("due to ProcessGroupNCCL watchdog hang", _hung),
    ),
)
