"""What can be searched: incidents, configurations, notes and results, as documents of words.

The documents of a run are made once for each version of its ledger, so that a question costs the
search itself, and the documents of live runs.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from headway.collector.fleet_shares import FleetShares
from headway.collector.remarks import Remark
from headway.collector.results import Result
from headway.collector.run_ledger import Snapshot
from headway.course.periods import Period, change_words, setting_name, setting_words
from headway.search import Document, document
from headway.wording import plain, remark


class SearchIndex:
    """Makes and keeps the documents of runs; any thread may ask."""

    def __init__(self, shares: FleetShares) -> None:
        """Start without any; `shares` knows the configurations of runs."""
        self._shares = shares
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[str, Sequence[Document]]] = {}

    def of_run(self, snapshot: Snapshot) -> Sequence[Document]:
        """Return the documents of a run's incidents and configurations."""
        with self._lock:
            version, known = self._kept.get(snapshot.run, ("", ()))
        if version == snapshot.version:
            return known
        made = (
            *_incidents(snapshot),
            *_configurations(snapshot, self._shares.periods(snapshot)),
        )
        with self._lock:
            self._kept[snapshot.run] = snapshot.version, made
        return made


def of_remarks(remarks: Iterable[Remark]) -> Iterator[Document]:
    """Yield the documents of what people said."""
    for one in remarks:
        yield document(
            "note",
            one.run,
            one.about,
            one.subject,
            one.time,
            f"{one.author or 'somebody'} on {one.about} {one.subject}",
            [remark(asdict(one))],
        )


def of_results(results: Iterable[Result]) -> Iterator[Document]:
    """Yield the documents of attached results."""
    for one in results:
        yield document(
            "result",
            one.run,
            "configuration",
            one.configuration,
            one.time,
            one.title,
            [f"{place}: {number:g}" for place, number in one.numbers.items()],
        )


def _incidents(snapshot: Snapshot) -> Iterator[Document]:
    report = snapshot.report
    for one in report["incidents"]:
        suspects = [one["suspect_node"], one["suspect_gpu"], one["signature"]]
        yield document(
            "incident",
            snapshot.run,
            "incident",
            one["incident"],
            one["opened"],
            one["headline"],
            [
                plain(one["cause"]),
                *(str(each) for each in suspects if each is not None),
                *one["evidence"],
                *one["warnings"],
                report["run_name"],
                one["incident"],
            ],
        )


def _configurations(snapshot: Snapshot, known: Sequence[Period]) -> Iterator[Document]:
    """Yield one document per change, and one of all settings with which the run began."""
    for place, one in enumerate(known):
        name = f"{snapshot.report['run_name']}, attempt {one.attempts.start}"
        if place:
            names = (setting_name((change.field, change.name)) for change in one.changes)
            title = f"{name} changed {', '.join(names)}"
            lines = [change_words(change) for change in one.changes]
        else:
            title = f"{name}, the first configuration"
            lines = [setting_words(key, value) for key, value in one.settings.items()]
        if lines:
            yield document(
                "configuration", snapshot.run, "configuration", one.attempt, one.start, title, lines
            )
