"""Recorded evidence of an out-of-memory kill, replayed through the real agent and collector.

What a machine cannot stage is seen here always: the kernel's line, the counter of the memory
control group and the exit by SIGKILL, each as a machine that ran out of memory wrote it.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_process import UNWATCHED
from collector_process import collector_process
from headway.settings import ClientSettings
from headway.storage.client import CollectorClient
from launched import surroundings

pytestmark = pytest.mark.slow

RUN_ID = "llama-7"
KERNEL = (
    "[12199.713474] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg=/job,task_memcg=/job,task=python3,pid={pid},uid=0\n"
    "[12199.713514] Memory cgroup out of memory: Killed process {pid} (python3) "
    "total-vm:1229020kB, anon-rss:257256kB, file-rss:104468kB, shmem-rss:72kB, UID:0 "
    "pgtables:1100kB oom_score_adj:1000\n"
)
COUNTER = "low 0\nhigh 0\nmax {kills}\noom {kills}\noom_kill {kills}\noom_group_kill 0\n"
RUN = """
import sys
from pathlib import Path
from headway.exporter.launcher import ranks

counter = Path(sys.argv.pop(1))
ranks.kill_counter = lambda process_id: counter  # the control group of both ranks

from headway.cli import main
sys.exit(main())
"""
RANK = """
import os, time
from headway.exporter import Recorder

recorder = Recorder(run="llama")
recorder.resumed(completed=0)
for number in range(1, 6):
    with recorder.step(number):
        time.sleep(0.01)
print(os.environ["RANK"], os.getpid(), flush=True)
time.sleep(60)
"""
BOTH = 'RANK=0 WORLD_SIZE=2 "$0" -c "$1" & RANK=1 WORLD_SIZE=2 "$0" -c "$1" & wait'


@pytest.mark.parametrize(
    ("kernel_tells", "counter_tells", "cause"),
    [
        (True, True, "host_oom"),
        (True, False, "host_oom"),
        (False, True, "host_oom"),
        (False, False, "killed"),
    ],
)
def test_a_sigkill_is_an_oom_where_the_kernel_or_its_counter_says_so(
    kernel_tells: bool, counter_tells: bool, cause: str, tmp_path: Path
) -> None:
    kernel, counter = tmp_path / "kern.log", tmp_path / "memory.events"
    kernel.write_text("[1.000000] Linux version 6.1\n")
    counter.write_text(COUNTER.format(kills=0))
    with collector_process(tmp_path / "headway.duckdb") as collector:
        words = [sys.executable, "-c", RUN, str(counter), "run", "--port", "0", "--interval", "0.2"]
        with subprocess.Popen(
            [*words, "--", "sh", "-c", BOTH, sys.executable, RANK],
            env=surroundings(
                **UNWATCHED
                | {
                    "HEADWAY_AGENT_KERNEL_LOG": str(kernel),
                    "HEADWAY_SPOOL": str(tmp_path / "spool"),
                    "HEADWAY_RUN_ID": "7",
                    "HEADWAY_ENDPOINT": collector.address,
                    "NODE_NAME": "node-0",
                }
            ),
            stdout=subprocess.PIPE,
            text=True,
        ) as started:
            assert started.stdout is not None
            ranks = dict(started.stdout.readline().split() for _ in range(2))
            wait_until(collector.address, lambda report: report["steps"]["highest"] == 5)
            victim = int(ranks["1"])
            # the kernel counts and logs before it kills
            if counter_tells:
                counter.write_text(COUNTER.format(kills=1))
            if kernel_tells:
                with kernel.open("a") as log:
                    log.write(KERNEL.format(pid=victim))
            os.kill(victim, signal.SIGKILL)
            wait_until(collector.address, lambda report: bool(report["incidents"]))
            os.kill(int(ranks["0"]), signal.SIGTERM)
            assert started.wait(30) == 0
        with CollectorClient(ClientSettings(endpoint=collector.address)) as client:
            report = client.report(RUN_ID)

    (incident,) = report["incidents"]
    assert incident["cause"] == cause
    assert (incident["suspect_rank"], incident["suspect_node"]) == (1, "node-0")


def wait_until(address: str, holds: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until the collector tells something of the run."""
    deadline = time.monotonic() + 60
    with CollectorClient(ClientSettings(endpoint=address)) as client:
        while not (client.runs() and holds(client.report(RUN_ID))):
            assert time.monotonic() < deadline
            time.sleep(0.1)
