"""How a database file comes to be opened: tried in a child process, repaired only at its log.

The engine may abort, hang or refuse on what a power cut left, so a child looks first, read-only.
A damaged write-ahead log is kept under another name, and what is whole of it is still replayed;
the database file itself is never changed here.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import duckdb

from headway.sequences import SequenceSet, Source
from headway.storage import migrations
from headway.storage.acknowledged import Lost, acknowledged, journal_path, lost
from headway.storage.store import StoreError

_LOOK_TIME = 120.0
"""Seconds after which a look counts as a hang; a log of 16 MB is replayed in well under one."""
_SALVAGE_TIME = 120.0
"""Seconds for finding how much of a damaged log is whole."""
_MAGIC_AT, _MAGIC = 8, b"DUCK"
_SMALLEST = 3 * 4096
"""Bytes of the three headers with which every database file begins."""
_LOGS = (".wal", ".wal.checkpoint")
"""What the engine may have written beside the file, in the order of replay."""
_CHOOSE = "or choose another file with HEADWAY_COLLECTOR_DATABASE"


class State(StrEnum):
    """What can be done with a database file."""

    USABLE = "usable"
    HELD = "held"
    DAMAGED_WAL = "damaged_wal"
    DAMAGED_FILE = "damaged_file"
    FOREIGN = "foreign"
    NEWER_SCHEMA = "newer_schema"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What a look at a database file found; `words` say it in one sentence, `next_step` goes on."""

    state: State
    words: str
    next_step: str = ""
    lost: tuple[Lost, ...] = ()
    """Acknowledged records that the file and its log do not give back."""


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
            raise StoreError(_sentence(_held(path))) from error

    def release(self) -> None:
        """Let others take it."""
        os.close(self._file)


def probe(path: Path) -> Probe:
    """Say what can be done with a database file, without changing anything."""
    logs = _logs(path)
    try:
        noted = acknowledged(path)
        head = _head(path)
    except OSError as error:
        return _unreadable(path, str(error))
    if head is None:
        if not path.parent.is_dir():
            return _unreadable(path, f"there is no folder {str(path.parent)!r}")
        if logs:
            why = "it is there without its database file"
            return _damaged_log(path, why, tuple(lost(noted, {})))
        return Probe(state=State.USABLE, words=f"there is no database {str(path)!r} yet")
    if head[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC:
        return _foreign(path, "it does not begin as a DuckDB file")
    if path.stat().st_size < _SMALLEST:
        return _damaged_file(path, f"it ends after {path.stat().st_size} bytes")
    found = _look(path, [producer for _, producer in noted])
    if "error" in found:
        return _explained(path, found["error"], logs)
    return _judged(path, found, lost(noted, _sets(found["intervals"])), logs)


def recover(path: Path, now: Callable[[], int] = time.time_ns) -> Recovery | None:
    """Make a database file ready to be opened; return what had to be done, None where nothing.

    A missing file is created. Only a damaged log is repaired: it is kept under a name with the
    time (`now`, UTC ns), and the whole part of it takes its place. The caller holds the `Lock`.

    Raises:
        StoreError: the file cannot be used; it was not changed.
    """
    found = probe(path)
    if found.state not in (State.USABLE, State.DAMAGED_WAL):
        raise StoreError(_sentence(found))
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


def _judged(path: Path, found: dict[str, Any], missing: list[Lost], logs: Sequence[Path]) -> Probe:
    tables, version = found["tables"], found["version"]
    if version is not None and version not in migrations.versions():
        return Probe(
            state=State.NEWER_SCHEMA,
            words=f"the database {str(path)!r} has the schema {version}, and this version knows "
            f"{', '.join(migrations.versions())}: a newer version of headway wrote it",
            next_step=f"upgrade headway, {_CHOOSE}",
        )
    if tables and "events" not in tables:
        return _foreign(path, f"it holds the tables {', '.join(sorted(tables)[:5])} and no events")
    if missing and logs:
        return _damaged_log(path, "it lacks records that were acknowledged", tuple(missing))
    if missing:
        words = f"the database {str(path)!r} lacks records that were acknowledged"
        return Probe(state=State.USABLE, words=words, lost=tuple(missing))
    return Probe(state=State.USABLE, words=f"the database {str(path)!r} can be opened")


def _explained(path: Path, error: str, logs: Sequence[Path]) -> Probe:
    """Say what an error of the engine means; whether the log is to blame, an opening tells."""
    if "Could not set lock" in error:
        return _held(path, error)
    if "version number" in error:
        return Probe(
            state=State.NEWER_SCHEMA,
            words=f"the database {str(path)!r} was written by a newer DuckDB ({error})",
            next_step=f"upgrade headway, {_CHOOSE}",
        )
    if "Permission denied" in error:
        return _unreadable(path, error)
    if logs and "error" not in _look_with(path, [0 for _ in logs]):
        return _damaged_log(path, error, ())
    return _damaged_file(path, error)


def _repair(path: Path, found: Probe, now: Callable[[], int]) -> Recovery:
    """Keep the damaged logs under other names and put their whole part in their place."""
    logs = _logs(path)
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
            if "error" in _look_with(path, [*kept[:index], tried, *kept[index + 1 :]]):
                bad = tried
            else:
                good = tried
        kept[index] = good
        if good < size:
            break  # what follows a tear belongs to a state that is not reached
    return kept


def _look_with(path: Path, sizes: Sequence[int]) -> dict[str, Any]:
    """Look at a file with so many bytes of its logs, leaving it as it is."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        # Not a symbolic link: the engine looks for logs beside what it leads to.
        link = Path(folder) / path.name
        try:
            link.hardlink_to(path)
        except OSError:
            shutil.copyfile(path, link)
        for log, size in zip(_logs(path), sizes, strict=True):
            if size:
                copy = Path(folder) / log.name
                shutil.copyfile(log, copy)
                os.truncate(copy, size)
        return _look(link, [])


def _look(path: Path, producers: Sequence[str]) -> dict[str, Any]:
    """Let a child look; whatever ends it is an error in the answer."""
    command = [sys.executable, "-P", "-m", "headway.storage.looking", str(path)]
    try:
        answer = subprocess.run(  # noqa: S603  # our own module
            command,
            input=json.dumps(producers),
            capture_output=True,
            text=True,
            timeout=_LOOK_TIME,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"opening it took more than {_LOOK_TIME:g} s"}
    if answer.returncode < 0:
        return {"error": f"opening it ended a process by signal {-answer.returncode}"}
    if answer.returncode > 0:
        last = answer.stderr.strip().rpartition("\n")[2]
        return {"error": f"opening it failed: {last}"}
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def _create(path: Path) -> None:
    """Create a database file that is whole from its first moment under its name."""
    unfinished = path.with_name(path.name + ".new")
    unfinished.unlink(missing_ok=True)
    duckdb.connect(str(unfinished)).close()
    journal_path(path).unlink(missing_ok=True)  # it is about a file that somebody moved away
    unfinished.replace(path)


def _logs(path: Path) -> list[Path]:
    """Return the logs beside a file that hold anything."""
    named = [path.with_name(path.name + suffix) for suffix in _LOGS]
    return [log for log in named if log.exists() and log.stat().st_size]


def _head(path: Path) -> bytes | None:
    """Return the first bytes of a file, None where there is none."""
    try:
        with path.open("rb") as file:
            return file.read(_MAGIC_AT + len(_MAGIC))
    except FileNotFoundError:
        return None


def _sets(rows: Sequence[tuple[str | None, str, int, int]]) -> dict[Source, SequenceSet]:
    found: dict[Source, SequenceSet] = {}
    for run, producer, first, last in rows:
        found.setdefault((run, producer), SequenceSet()).add(first, last)
    return found


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _sentence(found: Probe) -> str:
    return f"{found.words}; {found.next_step}"


def _held(path: Path, error: str = "") -> Probe:
    detail = f" ({error})" if error else ""
    return Probe(
        state=State.HELD,
        words=f"the database {str(path)!r} is held by another process{detail}",
        next_step=f"stop that collector, {_CHOOSE}",
    )


def _damaged_log(path: Path, why: str, missing: tuple[Lost, ...]) -> Probe:
    return Probe(
        state=State.DAMAGED_WAL,
        words=f"the write-ahead log of the database {str(path)!r} is damaged: {why}",
        next_step="start the collector, which sets the log aside and goes on",
        lost=missing,
    )


def _damaged_file(path: Path, why: str) -> Probe:
    return Probe(
        state=State.DAMAGED_FILE,
        words=f"the database {str(path)!r} is damaged and was not touched: {why}",
        next_step=f"restore it from a backup, {_CHOOSE}",
    )


def _foreign(path: Path, why: str) -> Probe:
    return Probe(
        state=State.FOREIGN,
        words=f"cannot open the database {str(path)!r}: {why}; it was not touched",
        next_step="choose another file with HEADWAY_COLLECTOR_DATABASE",
    )


def _unreadable(path: Path, why: str) -> Probe:
    return Probe(
        state=State.UNREADABLE,
        words=f"cannot read the database {str(path)!r}: {why}",
        next_step=f"make it readable to this user, {_CHOOSE}",
    )
