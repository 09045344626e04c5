"""A writer killed in mid-write again and again: each opening works, nothing is lost or doubled."""

import multiprocessing
import random
import time
from contextlib import suppress
from pathlib import Path

import pytest

from arrivals import numbers, stored
from headway.storage.opening import recover
from killed_store import write_on
from records import PRODUCER

KILLS = 50


# A32: gizmodata/gizmosql#53
@pytest.mark.slow
def test_a_writer_killed_fifty_times_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Its log grows over all the kills: no orderly end ever empties it."""
    database = tmp_path / "events.duckdb"
    chance = random.Random(32)  # noqa: S311  # a schedule, not a secret
    start = multiprocessing.get_context("forkserver")
    start.set_forkserver_preload(["killed_store"])
    acknowledged = 0
    assert recover(database) is None
    for _ in range(KILLS):
        told, tell = start.Pipe(duplex=False)
        writer = start.Process(target=write_on, args=(database, tell))
        writer.start()
        tell.close()
        opened = told.recv()
        assert opened >= acknowledged
        acknowledged = opened
        time.sleep(chance.uniform(0, 0.05))
        writer.kill()
        with suppress(EOFError):
            while True:
                acknowledged = told.recv()
        writer.join()
        writer.close()
        told.close()
    assert recover(database) is None
    kept = numbers(stored(database))[PRODUCER]
    assert kept == list(range(1, len(kept) + 1))
    assert len(kept) >= acknowledged > KILLS
