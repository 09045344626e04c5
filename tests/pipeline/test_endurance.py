"""100,000 steps and 200 restarts: recorder, agent and spools end as they began.

Each of 100 rounds makes a recorder, trains 500 steps, restarts in process, trains 500 more and
closes; the next round is a restart of the process, as far as the recorder and the agent can tell.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from agent_process import AgentProcess, agent_process, clean_environment
from arrivals import steps_in, stored, wait_until
from collector_process import collector_process
from headway.exporter.spooling.layout import Producer
from headway.exporter.spooling.reader import SpoolReader, spools

pytestmark = pytest.mark.slow

ROUNDS, STEPS = 100, 500
SETTLED = 20
"""Rounds after which nothing may grow any more: caches are full, pools have their threads."""
ROOM = 6 * 1024**2
"""Bytes by which memory may differ between two looks: the allocator's own ups and downs."""
PROGRAM = """
import sys
from headway.exporter import Recorder

done = 0
for line in sys.stdin:
    recorder = Recorder()
    recorder.resumed(completed=done)
    for iteration in range(2):
        if iteration:
            recorder.attempt(layer="in_process", iteration=iteration)
            recorder.resumed(completed=done)
        with recorder.phase("evaluation"):
            pass
        for _ in recorder.batches(range(int(line))):
            with recorder.step(done + 1) as step:
                step.loss = 1 / (done + 1)
            done += 1
    recorder.close()
    print(done, flush=True)
"""


class Figures(NamedTuple):
    """What a process holds."""

    files: int
    threads: int
    memory: int


def figures(process_id: int) -> Figures:
    status = Path(f"/proc/{process_id}/status").read_text(encoding="utf-8")
    values = dict(line.split(":", 1) for line in status.splitlines())
    return Figures(
        files=len(os.listdir(f"/proc/{process_id}/fd")),
        threads=int(values["Threads"]),
        memory=int(values["VmRSS"].split()[0]) * 1024,
    )


def series(agent: AgentProcess) -> list[str]:
    """Return the names and labels of all samples."""
    text = httpx.get(agent.address + "/metrics", trust_env=False).text
    return [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]


def files(spool: Path) -> list[str]:
    return sorted(str(path.relative_to(spool)) for path in spool.rglob("*"))


def producers(spool: Path) -> list[Producer]:
    """Return who has a spool; the agent's own stay while it lives."""
    found = (SpoolReader(folder).producer for folder in spools(spool))
    return [producer for producer in found if producer is not None]


def assert_flat(before: Figures, after: Figures) -> None:
    assert after.files == before.files
    assert after.threads == before.threads
    assert after.memory <= before.memory + ROOM


def test_100_000_steps_and_200_restarts_leave_everything_flat(tmp_path: Path) -> None:
    spool, database = tmp_path / "spool", tmp_path / "store.duckdb"
    looks: dict[int, tuple[Figures, Figures, list[str], list[str]]] = {}
    with (
        collector_process(database) as collector,
        agent_process(spool, collector.address, "--gpus", "false") as agent,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=clean_environment(
                HEADWAY_RUN="llama", HEADWAY_RUN_ID="7", HEADWAY_SPOOL=str(spool)
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as training,
    ):
        assert training.stdin is not None
        assert training.stdout is not None
        for number in range(1, ROUNDS + 1):
            training.stdin.write(f"{STEPS}\n")
            training.stdin.flush()
            assert int(training.stdout.readline()) == 2 * STEPS * number
            if number in (SETTLED, ROUNDS):
                wait_until(lambda: not [one for one in producers(spool) if one.run is not None])
                looks[number] = (
                    figures(training.pid),
                    figures(agent.process.pid),
                    series(agent),
                    files(spool),
                )
        training.communicate()
        assert agent.stop()[0] == 0
        assert collector.stop()[0] == 0
    for before, after in zip(looks[SETTLED][:2], looks[ROUNDS][:2], strict=True):
        assert_flat(before, after)
    assert looks[SETTLED][2] == looks[ROUNDS][2]
    assert looks[SETTLED][3] == looks[ROUNDS][3]
    assert sorted(steps_in(stored(database))) == list(range(1, 2 * STEPS * ROUNDS + 1))
