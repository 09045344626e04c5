"""When a run is told how far its node's clock is off, so that its events are stamped alike.

Each telling moves all events of the node's boot, so small changes are kept to ourselves. What
was told is remembered in a file, because the next agent must go on from there.
"""

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median_high

from headway.events import Clock
from headway.exporter.node.clock_meter import Reading
from headway.exporter.spooling.layout import Producer
from headway.exporter.spooling.positions import write_atomically

_log = logging.getLogger(__name__)

SCATTER = 10_000_000
"""Offset in ns that is no news: a busy producer reads its two clocks that far apart."""
LEAST_CHANGE = 100_000_000
"""Change in ns that is worth a new stamp on every event of the boot."""
_FILE = "clocks.json"

Key = tuple[str | None, str | None]
"""Run and node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """Collector's clock minus the clock of a node's events, and the largest error; in ns."""

    offset: int
    error: int


def is_news(measured: Offset, told: Offset | None) -> bool:
    """Return whether a run should hear of an offset, given what it heard last.

    Example: 0.3 s off with an error of 0.1 s is news; 0.35 s after that is not.
    """
    if told is None:
        return abs(measured.offset) > max(measured.error, SCATTER)
    return abs(measured.offset - told.offset) > max(measured.error + told.error, LEAST_CHANGE)


class ClockNews:
    """Keeps what each run was told about this node in this boot."""

    def __init__(self, folder: Path, boot_id: str | None) -> None:
        """Go on from what is remembered in `folder`."""
        self.offsets: dict[str | None, Offset] = {}
        """The newest offset of each node name that ranks use."""
        self._path = folder / _FILE
        self._boot_id = boot_id
        self._told = _read(self._path, boot_id)
        self._waiting: dict[Key, Producer] = {}
        self._writable = True

    def tell(
        self,
        ranks: Iterable[Producer],
        reading: Reading | None,
        record: Callable[[Producer, Clock], None],
    ) -> None:
        """Record what is news for the runs of these ranks.

        A run that ends before the first reading hears of it all the same.
        """
        self._waiting.update(_spokesmen(ranks, self._boot_id))
        if reading is None:
            return
        for key, rank in self._waiting.items():
            measured = Offset(offset=reading.zero - rank.anchor, error=reading.error)
            self.offsets[rank.node] = measured
            if is_news(measured, self._told.get(key)):
                record(rank, Clock(offset=measured.offset, error=measured.error))
                self._told[key] = measured
                self._write()
        self._waiting.clear()

    def _write(self) -> None:
        told = [[*key, told.offset, told.error] for key, told in self._told.items()]
        try:
            write_atomically(self._path, {"boot_id": self._boot_id, "told": told})
        except OSError as error:
            if self._writable:
                _log.error("cannot write %s: %s; a restart tells offsets twice", self._path, error)
            self._writable = False
        else:
            self._writable = True


def _spokesmen(ranks: Iterable[Producer], boot_id: str | None) -> dict[Key, Producer]:
    """Return for each run and node the rank of this boot whose anchor is the middle one."""
    groups: dict[Key, dict[int, Producer]] = {}
    for rank in ranks:
        if rank.boot_id == boot_id:
            groups.setdefault((rank.run, rank.node), {})[rank.anchor] = rank
    return {key: anchors[median_high(anchors)] for key, anchors in groups.items()}


def _read(path: Path, boot_id: str | None) -> dict[Key, Offset]:
    try:
        content = json.loads(path.read_bytes())
        if content["boot_id"] != boot_id:
            return {}  # its monotonic clock began anew, and so did the offsets
        return {
            (run, node): Offset(offset=int(offset), error=int(error))
            for run, node, offset, error in content["told"]
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError) as error:
        _log.warning("cannot read %s (%r); offsets are told again", path, error)
        return {}
