"""Ships spools that no agent shipped, and batches that were set aside as refused.

Nothing is deleted. What an agent shipped before, or ships at the same time, the collector
recognises.
"""

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path

from headway import wire
from headway.exporter.shipping import REFUSED_FOLDER, Shipper
from headway.exporter.spooling.layout import Position
from headway.exporter.spooling.positions import Positions
from headway.exporter.spooling.reader import SpoolReader, spools

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Imported:
    """What an import has done so far."""

    producers: int = 0
    runs: set[str] = field(default_factory=set)
    acknowledged: int = 0
    refused: int = 0
    damaged_blocks: int = 0
    unreadable: list[str] = field(default_factory=list)
    """Spools and files of which nothing could be read."""


def import_spools(folder: Path, shipper: Shipper, batch: int) -> Imported:
    """Ship every spool and every refused batch in a folder of spools, `batch` records at a time.

    Raises:
        NotTakenError: the collector does not answer or is behind; what it took it keeps.
    """
    done = Imported()
    positions = Positions(folder)
    for spool in spools(folder):
        # Only for the numbers of a dead producer's last words, should no record be left.
        start = Position(sequence=positions.get(spool.name).sequence)
        _import_spool(spool, start, shipper, batch, done)
    for path in sorted((folder / REFUSED_FOLDER).glob("*.jsonl")):
        _import_refused(path, shipper, done)
    return done


def _import_spool(
    spool: Path, position: Position, shipper: Shipper, batch: int, done: Imported
) -> None:
    reader = SpoolReader(spool)
    if reader.producer is None:
        done.unreadable.append(str(spool))
        return
    done.producers += 1
    if reader.producer.run is not None:
        done.runs.add(reader.producer.run)
    while True:
        found = reader.read(position, batch)
        shipment = shipper.ship(found.envelopes)
        done.acknowledged += shipment.acknowledged
        done.refused += shipment.refused
        done.damaged_blocks += found.damaged
        if found.finished or found.position == position:
            return
        position = found.position


def _import_refused(path: Path, shipper: Shipper, done: Imported) -> None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        envelopes = [wire.from_json(json.loads(line)) for line in lines]
    except (OSError, ValueError) as error:
        _log.warning("cannot read %s: %s", path, error)
        done.unreadable.append(str(path))
        return
    shipment = shipper.ship(envelopes)
    done.acknowledged += shipment.acknowledged
    done.refused += shipment.refused
    done.runs |= {envelope.run for envelope in envelopes if envelope.run is not None}
