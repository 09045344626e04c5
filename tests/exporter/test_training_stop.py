"""A training that a person stops says so, quickly and quietly, and leaves nothing running."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headway.events import Fault, StopAnnounced
from headway.exporter.spooling.reader import SpoolReader, spools
from training_run import environment

pytestmark = pytest.mark.slow


def test_ctrl_c_is_recorded_as_a_stop_and_ends_every_process(tmp_path: Path) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    program = ["-m", "headway.exporter.training.loop", "--directory", str(tmp_path / "run")]
    with subprocess.Popen(
        [sys.executable, *launcher, *program, "--steps", "100000"],
        env=environment(tmp_path / "spool"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as training:
        assert training.stdout is not None
        lines = iter(training.stdout)
        before: list[str] = []
        while not (before and before[-1].startswith("step 1 of")):
            before.append(next(lines))
        os.killpg(training.pid, signal.SIGINT)
        after = list(lines)  # until the last process that could still write is gone
        assert training.wait(60) != 0
    ranks = [line for line in after if line.startswith("[rank") or "ForkProcess" in line]
    assert ranks == []
    batches = [SpoolReader(path).read(limit=10**6) for path in spools(tmp_path / "spool")]
    assert len(batches) == 2
    for batch in batches:
        assert batch.finished
        events = [envelope.event for envelope in batch.envelopes]
        assert StopAnnounced(reason="operator") in events
        assert not any(isinstance(event, Fault) for event in events)
