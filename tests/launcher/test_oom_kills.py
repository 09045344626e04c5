"""SIGKILL for lack of memory told apart from other kills: really, and by the kernel's words."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from headway.cli.memory_limit import MemoryLimit
from headway.events import Fault, RankExited
from launched import NOBODY, headway_run, spooled, surroundings

pytestmark = pytest.mark.slow

RANK = """
import os, time
from headway.exporter import Recorder

recorder = Recorder(run="llama")
recorder.resumed(completed=0)
with recorder.step(1):
    held = b"1" * 100 * 1024**2  # more than whoever takes the rest
print(os.environ["RANK"], os.getpid(), flush=True)
time.sleep(60)
"""
BOTH = 'RANK=0 WORLD_SIZE=2 "$0" -c "$1" & RANK=1 WORLD_SIZE=2 "$0" -c "$1" & wait'
COMMAND = ["sh", "-c", BOTH, sys.executable, RANK]


@contextmanager
def two_ranks(
    spool: Path, command: list[str], kernel_log: str
) -> Iterator[tuple[dict[int, int], "subprocess.Popen[bytes]"]]:
    """Start two ranks; yield the process of each."""
    words = headway_run(spool, command, NOBODY, kernel_log)
    with subprocess.Popen(words, env=surroundings(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(2)]
        ranks = {int(rank): int(process_id) for rank, process_id in lines}
        try:
            yield ranks, process
        finally:
            process.kill()
            for process_id in ranks.values():
                with suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGKILL)


def told(spool: Path) -> dict[int | None, tuple[int | None, str, list[str]]]:
    """Return signal, who ended it, and faults of each rank."""
    found = spooled(spool)
    return {
        item.rank: (
            item.event.signal,
            item.event.by,
            [
                other.event.kind
                for other in found
                if isinstance(other.event, Fault) and other.rank == item.rank
            ],
        )
        for item in found
        if isinstance(item.event, RankExited)
    }


@pytest.mark.parametrize(
    "line",
    [
        "[680111.646286] Memory cgroup out of memory: Killed process {pid} (python3) "
        "total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB "
        "oom_score_adj:0",
        "[680111.646286] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,"
        "mems_allowed=0,oom_memcg=/job,task_memcg=/job/0,task=python3,pid={pid},uid=0",
    ],
)
def test_the_kernels_line_names_the_rank_that_lacked_memory(tmp_path: Path, line: str) -> None:
    log = tmp_path / "kern.log"
    log.write_text("[1.000000] Out of memory: Killed process 1 (python3) total-vm:9kB\n")
    with two_ranks(tmp_path / "spool", COMMAND, str(log)) as (ranks, process):
        os.kill(ranks[0], signal.SIGKILL)
        os.kill(ranks[1], signal.SIGKILL)
        with log.open("a") as opened:
            opened.write(line.format(pid=ranks[1]) + "\n")
        assert process.wait(30) == 0
    assert told(tmp_path / "spool") == {
        0: (9, "unknown", []),
        1: (9, "kernel", ["host_oom"]),
    }


def test_a_kill_without_a_word_of_the_kernel_stays_unknown(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text("")
    with two_ranks(tmp_path / "spool", COMMAND, str(log)) as (ranks, process):
        with log.open("a") as opened:
            another = max(ranks.values()) + 1
            opened.write(
                f"[3.000000] Out of memory: Killed process {another} (java) total-vm:9kB\n"
            )
        for process_id in ranks.values():
            os.kill(process_id, signal.SIGKILL)
        assert process.wait(30) == 0
    assert told(tmp_path / "spool") == {0: (9, "unknown", []), 1: (9, "unknown", [])}


def test_of_two_that_die_at_once_none_is_taken_for_the_one_that_lacked_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the kernel's log a counter tells of one kill and not whose: it may be left open."""
    monkeypatch.setenv("PYTHONPATH", surroundings()["PYTHONPATH"])
    try:
        limit = MemoryLimit(f"headway-test-{os.getpid()}-both")
    except OSError as error:
        pytest.skip(str(error))
    try:
        with two_ranks(tmp_path / "spool", limit.entered_by(COMMAND), "off") as (ranks, process):
            limit.run_out(ranks[1])
            os.kill(ranks[0], signal.SIGKILL)
            assert process.wait(30) == 0
    finally:
        limit.close()
    found = told(tmp_path / "spool")
    assert found[0] == (9, "unknown", [])
    assert found[1] in [(9, "unknown", []), (9, "kernel", ["host_oom"])]


@pytest.mark.parametrize("kernel_log", ["off", "auto"])
def test_a_rank_that_really_lacks_memory_is_told_from_one_that_is_killed(
    tmp_path: Path, kernel_log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", surroundings()["PYTHONPATH"])
    try:
        limit = MemoryLimit(f"headway-test-{os.getpid()}-{kernel_log}")
    except OSError as error:
        pytest.skip(str(error))
    try:
        command = limit.entered_by(COMMAND)
        with two_ranks(tmp_path / "spool", command, kernel_log) as (ranks, process):
            limit.run_out(ranks[1])
            # Of two deaths between two looks a counter alone cannot tell which it counted.
            deadline = time.monotonic() + 30
            while 1 not in told(tmp_path / "spool"):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            os.kill(ranks[0], signal.SIGKILL)
            assert process.wait(30) == 0
    finally:
        limit.close()
    assert told(tmp_path / "spool") == {
        0: (9, "unknown", []),
        1: (9, "kernel", ["host_oom"]),
    }
