"""A writer killed in mid-write again and again: each opening works, nothing is lost or doubled."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arrivals import numbers, stored
from headway.storage.opening import recover
from records import PRODUCER

KILLS = 50
PROGRAM = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from headway.storage.store import EventStore
from records import steps

store = EventStore.open(Path(sys.argv[1]))
done = sum(item.last_sequence - item.first_sequence + 1 for item in store.envelopes())
print(done, flush=True)
while True:
    store.append([steps(max(1, done - 5), done + 40)])
    done += 40
    print(done, flush=True)
"""


# A32: gizmodata/gizmosql#53
@pytest.mark.slow
def test_a_writer_killed_fifty_times_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Its log grows over all the kills: no orderly end ever empties it."""
    database = tmp_path / "events.duckdb"
    chance = random.Random(32)  # noqa: S311  # a schedule, not a secret
    acknowledged = 0
    for _ in range(KILLS):
        assert recover(database) is None
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(database), *sys.path],
            stdout=subprocess.PIPE,
            text=True,
        ) as writer:
            assert writer.stdout is not None
            opened = int(writer.stdout.readline())
            assert opened >= acknowledged
            time.sleep(chance.uniform(0, 0.05))
            writer.kill()
            acknowledged = max([opened, *map(int, writer.stdout.read().split())])
    kept = numbers(stored(database))[PRODUCER]
    assert kept == list(range(1, len(kept) + 1))
    assert len(kept) >= acknowledged > KILLS
