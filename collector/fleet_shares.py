"""What each run adds to the fleet's figures, kept until its ledger changes.

A closed run is reckoned once for each window, so that a question costs what is live.
"""

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headway.collector.run_ledger import Snapshot
from headway.comparison.parts import Part, Stretch, part_of
from headway.course.periods import Period, periods
from headway.fleet import spans
from headway.fleet.course import Cells, cells_of
from headway.fleet.past import PastIncident, past_incidents
from headway.fleet.shares import Share, Strip, share_of, strip_of
from headway.fleet.spans import Span
from headway.ledger import pieces

_MOST_KEPT = 64
"""Answers kept of one run; windows that begin at another hour come to be asked for."""

_MOST_PREPARED = 100
"""Cells of one width that are reckoned of a run before anybody asks."""
SLOTS = 60
"""Slots of a run's strip unless somebody asks for another number."""

T = TypeVar("T")


@dataclass(slots=True)
class _Kept:
    """What was reckoned from one snapshot of a run."""

    version: str
    answers: dict[Hashable, Any] = field(default_factory=dict)


class FleetShares:
    """Reckons and keeps what runs add; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}

    def prepare(self, snapshot: Snapshot) -> None:
        """Reckon what wide windows need of a run that is over, while its ledger is held.

        Later it may have been let go, and of a thousand runs to read each again would take long.
        """
        end = snapshot.report["end"]
        if end is None or snapshot.held is None:
            return
        whole = Span(snapshot.report["start"], end + 1)
        self.share(snapshot, whole)
        self.strip(snapshot, whole, SLOTS)
        self.part(Stretch(of=snapshot, start=whole.start, end=end))
        for period in self.periods(snapshot):
            self.part(Stretch(of=snapshot, start=period.start, end=period.end))
        for width in spans.WIDTHS:
            if spans.HOUR <= width <= spans.DAY and (end - whole.start) // width < _MOST_PREPARED:
                self.cells(snapshot, whole, width)

    def past(self, snapshot: Snapshot) -> Sequence[PastIncident]:
        """Return the incidents of a run."""
        return self._once(snapshot, "past", lambda: past_incidents(snapshot.report))

    def share(self, snapshot: Snapshot, span: Span) -> Share:
        """Return what a run adds in a window."""
        past = self.past(snapshot)
        return self._once(
            snapshot,
            ("share", *_within(snapshot, span)),
            lambda: share_of(snapshot.ledger, snapshot.report, past, span),
        )

    def cells(self, snapshot: Snapshot, span: Span, width: int) -> Cells:
        """Return the GPU time of a run in the cells of a window."""
        return self._once(
            snapshot,
            ("cells", width, *_within(snapshot, span)),
            lambda: cells_of(snapshot.ledger, span, width),
        )

    def strip(self, snapshot: Snapshot, span: Span, slots: int) -> Strip:
        """Return the states of a run in a window as stretches of a line."""
        return self._once(
            snapshot,
            ("strip", slots, *_within(snapshot, span)),
            lambda: strip_of(snapshot.ledger, span, slots),
        )

    def periods(self, snapshot: Snapshot) -> Sequence[Period]:
        """Return for how long each configuration of a run held."""
        return self._once(snapshot, "periods", lambda: periods(snapshot.ledger))

    def part(self, stretch: Stretch[Snapshot], excluded: Sequence[pieces.Span] = ()) -> Part:
        """Return what a part of a run adds to one side of a comparison."""
        start, end = stretch.start, stretch.end
        cut = tuple(one for one in excluded if one.start < end and one.end > start)
        return self._once(stretch.of, ("part", start, end, cut), lambda: part_of(stretch, excluded))

    def _once(self, snapshot: Snapshot, key: Hashable, reckon: Callable[[], T]) -> T:
        run = snapshot.run
        with self._lock:
            kept = self._kept.get(run)
            if kept is None or kept.version != snapshot.version:
                kept = self._kept[run] = _Kept(snapshot.version)
            if key in kept.answers:
                found: T = kept.answers[key]
                return found
        made = reckon()
        with self._lock:
            if len(kept.answers) >= _MOST_KEPT:
                kept.answers.clear()
            kept.answers[key] = made
        return made


def _within(snapshot: Snapshot, span: Span) -> tuple[int, int]:
    """Return the part of a window that tells for a run: all that lies around it is the same."""
    report = snapshot.report
    start, end = report["start"], report["end"] or report["as_of"]
    return max(span.start, start), min(span.end, end + 1)
