"""A collector that is away: the spool keeps to its size, and what found no room is told."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from agent_process import agent_process, clean_environment
from arrivals import steps_in, stored, wait_until
from collector_process import CollectorProcess, collector_process
from headway.exporter.spooling.reader import spools
from headway.settings import ClientSettings
from headway.storage.client import CollectorClient
from otlp_endpoint import otlp_endpoint

pytestmark = pytest.mark.slow

LIMIT = 256 * 1024
STEPS = 20_000
PROGRAM = f"""
from headway.exporter import Recorder

recorder = Recorder()
recorder.resumed(completed=0)
for step in range({STEPS}):
    with recorder.step(step + 1):
        pass
print("trained", flush=True)
input()
"""


def dropped(collector: CollectorProcess) -> int:
    with CollectorClient(ClientSettings(endpoint=collector.address)) as client:
        return int(client.report("llama-7")["dropped_events"])


def test_a_full_spool_keeps_to_its_size_and_what_was_dropped_is_counted_and_reported(
    tmp_path: Path,
) -> None:
    spool, database = tmp_path / "spool", tmp_path / "store.duckdb"
    with otlp_endpoint() as gone:
        port = int(gone.address.rpartition(":")[2])
    with (
        agent_process(spool, f"http://127.0.0.1:{port}", "--gpus", "false") as agent,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=clean_environment(
                HEADWAY_RUN="llama",
                HEADWAY_RUN_ID="7",
                HEADWAY_SPOOL=str(spool),
                HEADWAY_RECORDER_SPOOL_LIMIT=str(LIMIT),
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as training,
    ):
        assert training.stdout is not None
        assert training.stdout.readline() == "trained\n"
        (rank,) = (folder for folder in spools(spool) if holds(folder) > 64 * 1024)
        assert holds(rank) <= LIMIT
        _, said = training.communicate("\n", timeout=60)
        assert f"its limit is {LIMIT} bytes" in said
        assert training.returncode == 0
        with collector_process(database, port) as collector:
            wait_until(lambda: not rank.exists())
            wait_until(lambda: dropped(collector) > 0)
            counted = dropped(collector)
            metrics = httpx.get(agent.address + "/metrics", trust_env=False).text
            assert agent.stop()[0] == 0
            assert collector.stop()[0] == 0
    assert f'headway_node_dropped_records_total{{run="llama-7"}} {float(counted)}' in metrics
    kept = steps_in(stored(database))
    assert len(kept) == len(set(kept))
    # Beside the steps, the attempt's end and the recorder's own complaint may find no room.
    assert STEPS <= len(kept) + counted <= STEPS + 4


def holds(folder: Path) -> int:
    """Return the bytes of a spool's segments."""
    return sum(path.stat().st_size for path in folder.glob("*.segment"))
