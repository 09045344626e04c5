"""What can be done with a database file, found without changing it.

The engine may abort, hang or refuse on what a power cut left, so a child process looks, read-only.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from headway.sequences import SequenceSet, Source
from headway.storage import migrations
from headway.storage.acknowledged import Lost, acknowledged, lost

_LOOK_TIME = 120.0
"""Seconds after which a look counts as a hang; a log of 16 MB is replayed in well under one."""
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

    @property
    def sentence(self) -> str:
        """Return what is so and what to do."""
        return f"{self.words}; {self.next_step}"


def probe(path: Path) -> Probe:
    """Say what can be done with a database file, without changing anything."""
    logs = logs_of(path)
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
        return held(path, error)
    if "version number" in error:
        return Probe(
            state=State.NEWER_SCHEMA,
            words=f"the database {str(path)!r} was written by a newer DuckDB ({error})",
            next_step=f"upgrade headway, {_CHOOSE}",
        )
    if "Permission denied" in error:
        return _unreadable(path, error)
    if logs and "error" not in look_with(path, [0 for _ in logs]):
        return _damaged_log(path, error, ())
    return _damaged_file(path, error)


def look_with(path: Path, sizes: Sequence[int]) -> dict[str, Any]:
    """Look at a file with so many bytes of its logs, leaving it as it is."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        # Not a symbolic link: the engine looks for logs beside what it leads to.
        link = Path(folder) / path.name
        try:
            link.hardlink_to(path)
        except OSError:
            shutil.copyfile(path, link)
        for log, size in zip(logs_of(path), sizes, strict=True):
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


def logs_of(path: Path) -> list[Path]:
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


def held(path: Path, error: str = "") -> Probe:
    """Return that another process has the file."""
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
