"""Ranks killed at 100 random moments: what they had recorded is stored, and stored once.

A rank tells in a page of shared memory, which outlives it, how many of its calls to the recorder
have returned; the store must hold those and at most the one that was under way.
"""

import mmap
import random
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from agent_process import agent_process, clean_environment
from arrivals import numbers, steps_in, stored, wait_until
from collector_process import collector_process
from headway.events import Envelope, Note, RankExited
from headway.exporter.spooling.reader import spools

pytestmark = pytest.mark.slow

KILLS = 100
AT_ONCE = 4
"""Ranks that run beside each other."""
PROGRAM = """
import mmap, struct, sys, time
from pathlib import Path
from headway.events import Note
from headway.exporter import Recorder

with open(sys.argv[1], "r+b") as file:
    page = mmap.mmap(file.fileno(), 24)
struct.pack_into("<q", page, 0, 1)
recorder = Recorder()
recorder.resumed(completed=0)
step = notes = 0
while True:
    step += 1
    with recorder.step(step) as timer:
        timer.loss = 1 / step
    struct.pack_into("<q", page, 8, step)
    if step % 7 == 0:
        time.sleep(0.001)  # no kill comes after a flood of steps
        notes += 1
        recorder.record(Note(text=str(notes)))
        struct.pack_into("<q", page, 16, notes)
"""


class Returned(NamedTuple):
    """What a rank's page tells: whether it had begun, and the calls that had returned."""

    begun: int
    steps: int
    notes: int


class DoomedRank:
    """A rank that records until it is killed, some time after `moment` steps."""

    def __init__(self, folder: Path, spool: Path, rank: int, moment: int) -> None:
        self.rank, self._moment = rank, moment
        path = folder / f"page-{rank}"
        path.write_bytes(bytes(24))
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 24)
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path)],
            env=clean_environment(
                HEADWAY_RUN="llama",
                HEADWAY_RUN_ID="7",
                HEADWAY_SPOOL=str(spool),
                RANK=str(rank),
                LOCAL_RANK="1",  # it says nothing about a missing agent
                WORLD_SIZE=str(KILLS),
            ),
        )

    def returned(self) -> Returned:
        return Returned(*struct.unpack("<qqq", self._page))

    def die(self) -> Returned:
        """Kill it at its moment, the earliest being when it is about to make its recorder."""
        deadline = time.monotonic() + 60
        while not self.returned().begun or self.returned().steps < self._moment:
            assert time.monotonic() < deadline, "the rank does not record"
            time.sleep(0.001)
        self._process.kill()
        self._process.wait()
        return self.returned()


def test_what_a_killed_rank_had_recorded_is_stored_and_nothing_twice(tmp_path: Path) -> None:
    spool, database = tmp_path / "spool", tmp_path / "store.duckdb"
    chance = random.Random(100)  # noqa: S311  # a schedule, not a secret
    moments = [0] * 10 + [chance.randint(1, 20) for _ in range(30)]
    moments += [chance.randint(1, 1000) for _ in range(KILLS - len(moments))]
    chance.shuffle(moments)
    returned: dict[int, Returned] = {}
    with collector_process(database) as collector, agent_process(spool, collector.address) as agent:
        for first in range(0, KILLS, AT_ONCE):
            doomed = [
                DoomedRank(tmp_path, spool, rank, moments[rank])
                for rank in range(first, first + AT_ONCE)
            ]
            for rank in doomed:
                returned[rank.rank] = rank.die()
        wait_until(lambda: not spools(spool), 120)
        assert agent.stop()[0] == 0
        assert collector.stop()[0] == 0
    arrived = stored(database)
    for producer, found in numbers(arrived).items():
        assert found == list(range(len(found))), producer
    by_rank: dict[int | None, list[Envelope]] = {}
    for envelope in sorted(arrived, key=lambda item: item.first_sequence):
        by_rank.setdefault(envelope.rank, []).append(envelope)
    assert sum(one.steps > 0 for one in returned.values()) >= KILLS - 10
    for rank, calls in returned.items():
        envelopes = by_rank.get(rank, [])
        steps = steps_in(envelopes)
        notes = [item.event.text for item in envelopes if isinstance(item.event, Note)]
        assert steps == list(range(1, len(steps) + 1))
        assert notes == [str(number + 1) for number in range(len(notes))]
        assert calls.steps <= len(steps) <= calls.steps + 1
        assert calls.notes <= len(notes) <= calls.notes + 1
        exits = [item for item in envelopes if isinstance(item.event, RankExited)]
        assert len(exits) == bool(steps or exits), rank
