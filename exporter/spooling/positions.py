"""How far each spool was acknowledged, in one file that is replaced atomically.

Losing the file costs nothing but a second delivery, which the collector recognises; so it is not
forced to the disk at each change, and an unreadable one counts as empty.
"""

import json
import logging
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from headway.exporter.spooling.layout import Position

_log = logging.getLogger(__name__)

_FILE = "positions.json"


class Positions:
    """The acknowledged position of each producer, and whose death was already told."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._known, self._exits_told = _read(self._path)
        self._writable = True

    def get(self, producer: str) -> Position:
        """Return where reading goes on."""
        return self._known.get(producer, Position())

    def exit_told(self, producer: str) -> bool:
        """Return whether the death of this producer was recorded before."""
        return producer in self._exits_told

    def put(self, positions: Mapping[str, Position]) -> None:
        """Remember positions for good."""
        self._known.update(positions)
        self._write()

    def tell_exit(self, producer: str) -> None:
        """Remember for good that the death of this producer is recorded."""
        self._exits_told.add(producer)
        self._write()

    def forget(self, producers: Collection[str]) -> None:
        """Drop what is known of producers that left nothing behind."""
        for producer in producers:
            self._known.pop(producer, None)
            self._exits_told.discard(producer)
        self._write()

    def keep_only(self, producers: Collection[str]) -> None:
        """Drop what is known of all producers but these."""
        self.forget((self._known.keys() | self._exits_told) - set(producers))

    def _write(self) -> None:
        content = {"positions": self._known, "exits_told": sorted(self._exits_told)}
        try:
            write_atomically(self._path, content)
        except OSError as error:
            # A full disk is no reason to stop: what is acknowledged will be deleted.
            if self._writable:
                _log.error("cannot write %s: %s; a restart delivers twice", self._path, error)
            self._writable = False
        else:
            self._writable = True


def write_atomically(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a JSON file so that a reader sees the old or the new one, never a torn one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    # A folder that every user may write to must not lead an agent of root to another file.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with open(os.open(temporary, flags, 0o644), "w", encoding="ascii") as file:
        json.dump(content, file, sort_keys=True)
    temporary.replace(path)


def _read(path: Path) -> tuple[dict[str, Position], set[str]]:
    try:
        content = json.loads(path.read_bytes())
        known = {name: Position(*map(int, item)) for name, item in content["positions"].items()}
        return known, set(content["exits_told"])
    except FileNotFoundError:
        return {}, set()
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        _log.warning("cannot read %s (%r); the spools are sent again from their start", path, error)
        return {}, set()
