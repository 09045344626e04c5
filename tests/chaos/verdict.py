"""What became of what was recorded: lost, doubled, and whether each ledger is the undisturbed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arrivals import numbers, stored
from headway.events import Envelope
from headway.exporter.spooling.reader import SpoolReader, spools
from headway.ledger import Timeline
from headway.report import interval_objects, report


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Counts of records, and the runs whose ledgers differ."""

    acknowledged: int
    lost: int
    duplicated: int
    runs: tuple[str, ...]
    different: tuple[str, ...]


def verdict(truth: Path, database: Path, live: Mapping[str, Mapping[str, Any]]) -> Verdict:
    """Compare what the producers wrote with what a collector that has ended has stored.

    All of it was acknowledged: the agent has deleted every spool. `live` holds the reports that
    the collector gave before it ended.
    """
    written, arrived = _recorded(truth), stored(database)
    expected, found = numbers(written), numbers(arrived)
    producers = expected.keys() | found.keys()
    lost = sum(len(set(expected.get(one, ())) - set(found.get(one, ()))) for one in producers)
    doubled = sum(len(found.get(one, ())) - len(set(found.get(one, ()))) for one in producers)
    runs = sorted({item.run for item in written if item.run is not None})
    as_of = max(item.anchor + item.monotonic for item in written) + 10**9
    return Verdict(
        acknowledged=sum(len(sequence) for sequence in expected.values()),
        lost=lost,
        duplicated=doubled,
        runs=tuple(runs),
        different=tuple(
            run
            for run in runs
            if told(run, written, as_of) != told(run, arrived, as_of)
            or live[run] != told(run, written, live[run]["as_of"])["report"]
        ),
    )


def told(run: str, envelopes: Sequence[Envelope], as_of: int) -> dict[str, Any]:
    """Return what is told of a run: its report and every interval, to the nanosecond."""
    timeline = Timeline(run)
    timeline.add([item for item in envelopes if item.run == run])
    book = timeline.ledger(as_of)
    answer = {"report": report(book), "intervals": interval_objects(book.intervals())}
    return dict(json.loads(json.dumps(answer)))


def _recorded(truth: Path) -> list[Envelope]:
    found: list[Envelope] = []
    for folder in spools(truth):
        found += SpoolReader(folder).read(limit=10**9).envelopes
    return found
