"""How a database file comes to be opened: looked at first, repaired only at its log.

A damaged write-ahead log is kept under another name, and what is whole of it is still replayed;
the database file itself is never changed here.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from headway.storage.acknowledged import Lost, journal_path
from headway.storage.probe import Probe, State, held, logs_of, look_with, probe
from headway.storage.store import StoreError

_SALVAGE_TIME = 120.0
"""Seconds for finding how much of a damaged log is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What was done so that a database could be opened, and what it cost."""

    words: str
    set_aside: tuple[Path, ...]
    kept: int
    """Bytes of the log that were whole and are replayed."""
    damaged: int
    """Bytes of the log behind them."""
    lost: tuple[Lost, ...]


class Lock:
    """Says to other collectors that a database is taken, before the engine has opened it."""

    def __init__(self, path: Path) -> None:
        """Take the lock of a database; the kernel releases it when the process ends.

        Raises:
            StoreError: another process has it, or the folder cannot be written.
        """
        lock = path.with_name(path.name + ".lock")
        try:
            self._file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot use the database {str(path)!r}: {error}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            raise StoreError(held(path).sentence) from error

    def release(self) -> None:
        """Let others take it."""
        os.close(self._file)


def recover(path: Path, now: Callable[[], int] = time.time_ns) -> Recovery | None:
    """Make a database file ready to be opened; return what had to be done, None where nothing.

    A missing file is created. Only a damaged log is repaired: it is kept under a name with the
    time (`now`, UTC ns), and the whole part of it takes its place. The caller holds the `Lock`.

    Raises:
        StoreError: the file cannot be used; it was not changed.
    """
    found = probe(path)
    if found.state not in (State.USABLE, State.DAMAGED_WAL):
        raise StoreError(found.sentence)
    try:
        done = None
        if found.state is State.DAMAGED_WAL:
            done = _repair(path, found, now)
        elif found.lost:
            done = Recovery(words=found.words, set_aside=(), kept=0, damaged=0, lost=found.lost)
        if not path.exists():
            _create(path)
    except (OSError, duckdb.Error) as error:
        raise StoreError(
            f"the database {str(path)!r} could not be made ready: {error}; make room there, or "
            "let this user write there"
        ) from error
    return done


def _repair(path: Path, found: Probe, now: Callable[[], int]) -> Recovery:
    """Keep the damaged logs under other names and put their whole part in their place."""
    logs = logs_of(path)
    sizes = [log.stat().st_size for log in logs]
    if not path.exists():
        whole = [0 for _ in logs]
    elif found.lost:
        whole = sizes  # they could be read, and do not hold what they should
    else:
        whole = _whole(path, sizes)
    seconds, rest = divmod(now(), 10**9)
    moment = f"{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%S}.{rest // 1000:06}Z"
    aside = []
    for log, size in zip(logs, whole, strict=True):
        kept = log.with_name(f"{log.name}.damaged-{moment}")
        shutil.copy2(log, kept)
        _sync(kept)
        aside.append(kept)
        # In one move, so that a kill leaves either the damaged log or its whole part.
        part = log.with_name(log.name + ".whole")
        shutil.copyfile(log, part)
        os.truncate(part, size)
        _sync(part)
        if size:
            part.replace(log)
        else:
            part.unlink()
            log.unlink()
    return Recovery(
        words=found.words,
        set_aside=tuple(aside),
        kept=sum(whole),
        damaged=sum(sizes) - sum(whole),
        lost=found.lost or probe(path).lost,
    )


def _whole(path: Path, sizes: Sequence[int]) -> list[int]:
    """Return how many bytes of each log can be replayed, found by bisection over openings."""
    deadline = time.monotonic() + _SALVAGE_TIME
    kept = [0 for _ in sizes]
    for index, size in enumerate(sizes):
        good, bad = 0, size + 1
        while bad - good > 1 and time.monotonic() < deadline:
            tried = size if bad > size else (good + bad) // 2
            if "error" in look_with(path, [*kept[:index], tried, *kept[index + 1 :]]):
                bad = tried
            else:
                good = tried
        kept[index] = good
        if good < size:
            break  # what follows a tear belongs to a state that is not reached
    return kept


def _create(path: Path) -> None:
    """Create a database file that is whole from its first moment under its name."""
    unfinished = path.with_name(path.name + ".new")
    unfinished.unlink(missing_ok=True)
    duckdb.connect(str(unfinished)).close()
    journal_path(path).unlink(missing_ok=True)  # it is about a file that somebody moved away
    unfinished.replace(path)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
