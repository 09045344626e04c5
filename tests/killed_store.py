"""A database as a killed collector leaves it: the newest commits only in the write-ahead log."""

import shutil
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from headway.storage.store import EventStore
from records import steps

PER_COMMIT = 10
"""Steps in each commit; producer and sequence numbers are those of `records.steps`."""
PROGRAM = """
import os, sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from headway.storage.store import EventStore
from records import steps

store = EventStore.open(Path(sys.argv[1]))
store.append([steps(1, 10)])
store.settle()
for commit in range(1, int(sys.argv[2])):
    store.append([steps(10 * commit + 1, 10 * commit + 10)])
    print(os.path.getsize(sys.argv[1] + ".wal"), flush=True)
os._exit(9)
"""


def killed_store(database: Path, commits: int) -> list[int]:
    """Store steps in so many commits and die; return the log's size after each but the first.

    The first commit is in the file itself.
    """
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(database), str(commits), *sys.path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 9, ended.stderr
    return [int(line) for line in ended.stdout.split()]


def copy_of(database: Path, folder: Path) -> Path:
    """Copy a database and what lies beside it into a new folder."""
    folder.mkdir()
    for path in database.parent.glob(f"{database.name}*"):
        shutil.copy2(path, folder / path.name)
    return folder / database.name


def log_of(database: Path) -> Path:
    """Return the write-ahead log of a database."""
    return database.with_name(database.name + ".wal")


def write_on(database: Path, told: Connection) -> None:
    """Store steps until killed; tell how many there are at first and after each commit."""
    store = EventStore.open(database)
    done = sum(item.last_sequence - item.first_sequence + 1 for item in store.envelopes())
    told.send(done)
    while True:
        # Partly again, as an agent would that crashed, too.
        store.append([steps(max(1, done - 5), done + 40)])
        done += 40
        told.send(done)
