"""Which records were acknowledged since the database's file last took in its write-ahead log.

The engine replays a torn log up to the tear and says nothing about what lay behind it. This small
file beside the database says what must be there, so that a loss is told and not merely suffered.
It is written after each commit and before its acknowledgement, and not synced: it outlives a
killed process, and after a power cut it may know less than was acknowledged.
"""

import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.blocks import Block, Part, source
from headway.sequences import SequenceSet, Source
from headway.storage.unseen import stretches

_LOG = logging.getLogger(__name__)

SUFFIX = ".acknowledged"
"""What follows the database's name in the name of this file."""
_WAL_SUFFIX = ".wal"

Acknowledged = Mapping[Source, SequenceSet]
"""Sequence numbers by run and producer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Records of one producer that were acknowledged and are not in the database."""

    run: str | None
    producer: str
    ranges: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        """Return the number of records."""
        return sum(last - first + 1 for first, last in self.ranges)


class Journal:
    """The file of acknowledged records beside one database."""

    def __init__(self, database: Path) -> None:
        """Open or create the file; it is kept until the log shrinks.

        Raises:
            OSError: it cannot be written.
        """
        self._path = journal_path(database)
        self._wal = database.with_name(database.name + _WAL_SUFFIX)
        self._wal_size = _size(self._wal)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self._path, flags, 0o600)
        # What a killed process left may end in the middle of a line.
        os.write(self._file, b"\n")

    def close(self) -> None:
        """Let go of the file, which has no use once the log is empty."""
        os.close(self._file)
        if _size(self._wal) == 0:
            self._path.unlink(missing_ok=True)

    def note(self, stored: Iterable[Part]) -> None:
        """Remember what one transaction stored; forget all where the file took in its log."""
        size, before = _size(self._wal), self._wal_size
        self._wal_size = size
        try:
            if size < before:
                os.ftruncate(self._file, 0)
            if size:
                os.write(self._file, _line(stored))
        except OSError as error:
            # The records are stored all the same, and so they may be acknowledged.
            _LOG.warning("cannot note in %s what was acknowledged: %s", self._path, error)

    def forget(self) -> None:
        """Forget everything: what was lost has been told."""
        os.ftruncate(self._file, 0)


def journal_path(database: Path) -> Path:
    """Return where the acknowledged records of a database are noted."""
    return database.with_name(database.name + SUFFIX)


def acknowledged(database: Path) -> Acknowledged:
    """Read what was noted; a line that was cut or damaged is left out.

    Raises:
        OSError: there is a file, and it cannot be read.
    """
    try:
        lines = journal_path(database).read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    found: dict[Source, SequenceSet] = {}
    for line in lines:
        for run, producer, first, last in _entries(line):
            found.setdefault((run, producer), SequenceSet()).add(first, last)
    return found


def lost(noted: Acknowledged, stored: Acknowledged) -> list[Lost]:
    """Return what was noted as acknowledged and is not stored."""
    found = []
    for (run, producer), numbers in noted.items():
        known = stored.get((run, producer), SequenceSet())
        missing = [gap for first, last in numbers for gap in known.missing(first, last)]
        if missing:
            found.append(Lost(run=run, producer=producer, ranges=tuple(missing)))
    return found


def _line(stored: Iterable[Part]) -> bytes:
    noted: dict[Source, SequenceSet] = {}
    for part in stored:
        numbers = noted.setdefault(source(part), SequenceSet())
        if isinstance(part, Block):
            for begin, end, first in stretches(part):
                numbers.add(first, first + end - begin - 1)
        else:
            numbers.add(part.first_sequence, part.last_sequence)
    entries = [
        [run, producer, first, last]
        for (run, producer), numbers in noted.items()
        for first, last in numbers
    ]
    return json.dumps(entries, separators=(",", ":")).encode() + b"\n" if entries else b""


def _entries(line: bytes) -> list[tuple[str | None, str, int, int]]:
    try:
        entries = [tuple(entry) for entry in json.loads(line)]
    except (ValueError, TypeError):  # cut, or not even a list
        return []
    return [entry for entry in entries if _is_entry(entry)]


def _is_entry(entry: tuple[Any, ...]) -> bool:
    match entry:
        case (str() | None, str(), int() as first, int() as last):
            return first <= last
    return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
