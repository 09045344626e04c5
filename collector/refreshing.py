"""Keeps the ledgers of live runs current beside the requests, for a bounded share of one core.

Otherwise everybody who asks for all runs would have to compute what changed since the last one.
Many records are taken in by small pieces with a rest after each: threads take turns, and a long
turn of this one would hold up commits.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from headway.collector.ledgers import Ledgers
from headway.collector.run_ledger import LedgerFailed, RunLedger

_LOG = logging.getLogger(__name__)

_SECOND = 10**9
_ASKED = 10.0
"""Seconds for which somebody who asked for all runs is expected to ask again."""
_OFTEN = _SECOND
_SELDOM = 10 * _SECOND
"""Ages in ns at which a ledger is computed again while somebody asks, and while nobody does."""
_SHARE = 0.2
"""Most of one core's time that it takes."""
_PIECE = 1_000
"""Records taken in at a time, which takes some 20 ms."""
_CATCHING_UP = 10 * _SECOND
"""Longest time in ns of taking in what waits before the ledger is computed without the rest."""
_LONGEST_END = 0.5
"""Seconds to wait at the end for a ledger that is being computed."""
_LOOK_SECONDS = 0.2
"""Seconds until the next look where nothing is to be done."""


class Refresher:
    """Computes the oldest ledger of those that changed, again and again."""

    def __init__(self, ledgers: Ledgers, clock: Callable[[], int]) -> None:
        """Do nothing yet; `clock` gives the time in UTC nanoseconds."""
        self._ledgers = ledgers
        self._clock = clock
        self._catching_up: RunLedger | None = None
        self._until = 0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, in a thread."""
        self._thread = threading.Thread(target=self._run, name="headway-refresh", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End; a ledger that is being computed is waited for only a little."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_LONGEST_END)

    def refresh(self) -> float:
        """Do a piece of work on one ledger if it is time; return for how many seconds to rest."""
        now = self._clock()
        if self._catching_up is None:
            is_asked = time.monotonic() - self._ledgers.asked < _ASKED
            oldest = next(iter(self._ledgers.stale(now)), None)
            if oldest is None or now - oldest.as_of < (_OFTEN if is_asked else _SELDOM):
                return _LOOK_SECONDS
            self._catching_up, self._until = oldest, now + _CATCHING_UP
        begun = time.thread_time_ns()
        run = self._catching_up
        if not run.take_in(_PIECE) or now >= self._until:
            self._catching_up = None
            with suppress(LedgerFailed):
                run.refresh()
        return (time.thread_time_ns() - begun) / _SECOND * (1 / _SHARE - 1)

    def _run(self) -> None:
        rest = 0.0
        while not self._stopping.wait(rest):
            try:
                rest = self.refresh()
            except Exception:
                _LOG.exception("a ledger could not be refreshed; it is tried again")
                rest = _LOOK_SECONDS
