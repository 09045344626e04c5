"""Takes an exported folder into a database: what it knows already stays as it is.

Events go through the interval sets like any others, so importing twice stores them once.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway import wire
from headway.events import Envelope
from headway.sequences import SequenceSet, Source
from headway.storage.copying import exported, rows_of
from headway.storage.rows import from_values
from headway.storage.store import EventStore, Quarantined
from headway.storage.tables import DERIVED, EVENTS, INTERVALS, QUARANTINE

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import stored; counts are records, so 100 steps count 100."""

    num_stored: int
    num_duplicate: int
    num_left_out: int
    num_derived: int


def import_folder(store: EventStore, folder: Path) -> Imported:
    """Store what a folder holds and the store does not.

    Raises:
        CopyError: the folder is no export of this version.
        StoreError: something could not be stored.
    """
    stored = duplicate = left_out = 0
    with exported(folder) as files:
        for rows in rows_of(files[EVENTS]):
            envelopes: list[Envelope] = []
            for row in rows:
                try:
                    envelopes.append(from_values(row))
                except wire.WireError as error:
                    _LOG.warning("an exported record is left out: %s", error)
                    left_out += 1
            appended = store.append(envelopes)
            stored += appended.num_stored
            duplicate += appended.num_duplicate
        for rows in rows_of(files[QUARANTINE]):
            store.append([], [_quarantined(row) for row in rows])
        known: dict[Source, SequenceSet] = {}
        for rows in rows_of(files[INTERVALS]):
            for row in rows:
                ranges = known.setdefault((row["run"], row["producer"]), SequenceSet())
                ranges.add(row["first_sequence"], row["last_sequence"])
        store.know(known)
        derived = sum(
            store.keeping.take(table, rows) for table in DERIVED for rows in rows_of(files[table])
        )
    return Imported(
        num_stored=stored,
        num_duplicate=duplicate,
        num_left_out=left_out,
        num_derived=derived,
    )


def _quarantined(row: Mapping[str, Any]) -> Quarantined:
    return Quarantined(received=row["received"], reason=row["reason"], raw=row["raw"])
