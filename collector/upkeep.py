"""What the collector does beside its requests: write down what ledgers say, let old steps go.

One thread of its own; a commit never waits for it. What fails is logged and tried again later.
"""

import logging
import threading
import time
from collections.abc import Callable

from headway.collector.ledgers import Fleet, Ledgers
from headway.expiry import expiry
from headway.settings import CollectorSettings
from headway.storage.said import rows_of
from headway.storage.store import EventStore

_LOG = logging.getLogger(__name__)

_SECOND = 10**9
_DAY = 86_400 * _SECOND
_SAY_SECONDS = 60.0
"""Seconds between two looks for ledgers that say something new."""
_LAST_WORD = _SECOND
"""Longest time in ns for writing down at the end what is new."""
_RUNS_AT_ONCE = 50
"""Runs of which the words are written in one transaction."""
_SHARE = 0.25
"""Most of one core's time for what concerns many runs."""
_EXPIRE_EVERY = 60
"""Looks between two for steps that expire."""


class Upkeep:
    """Keeps the rows of what ledgers say current, and expires raw records of steps."""

    def __init__(
        self,
        store: EventStore,
        ledgers: Ledgers,
        settings: CollectorSettings,
        clock: Callable[[], int],
    ) -> None:
        """Do nothing yet; `clock` gives the time in UTC nanoseconds."""
        self._store = store
        self._ledgers = ledgers
        self._settings = settings
        self._clock = clock
        self._said: dict[str, str] = {}
        self._looked: dict[str, int] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look every minute, in a thread."""
        self._thread = threading.Thread(target=self._run, name="headway-upkeep", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what is being done, write down what is new, and end.

        Whoever reads the file without a collector sees the last word of every ledger, then, unless
        it takes long to compute.
        """
        self._stopping.set()
        if self._thread is None:
            return
        self._thread.join()
        deadline = self._clock() + _LAST_WORD
        try:
            self._say(self._ledgers.last(), lambda: self._clock() < deadline)
        except Exception:
            _LOG.exception("the last words of the ledgers could not be written")

    def say(self) -> int:
        """Write what the ledgers say as far as it is new; return how many rows."""
        return self._say(self._ledgers.fleet(), lambda: not self._stopping.is_set())

    def _say(self, fleet: Fleet, going_on: Callable[[], bool]) -> int:
        new = [
            snapshot
            for snapshot in fleet.snapshots
            if self._said.get(snapshot.run) != snapshot.version
        ]
        count = 0
        for begin in range(0, len(new), _RUNS_AT_ONCE):
            if not going_on():
                break
            begun = time.thread_time()
            some = {one.run: one for one in new[begin : begin + _RUNS_AT_ONCE]}
            rows = {run: rows_of(snapshot.report) for run, snapshot in some.items()}
            count += self._store.keeping.say(rows, self._clock())
            self._said |= {run: snapshot.version for run, snapshot in some.items()}
            self._rest(begun)
        return count

    def expire(self) -> int:
        """Let the raw records of old steps go, and superseded rows; return how many records."""
        self._store.keeping.forget_superseded(self._clock() - _DAY)
        if not self._settings.step_retention_days:
            return 0
        now = self._clock()
        until = now - round(self._settings.step_retention_days * _DAY)
        count = 0
        expirable = self._store.keeping.expirable(until)
        for run, old in expirable.items():
            if self._stopping.is_set():
                break
            if self._looked.get(run) != old:
                begun = time.thread_time()
                count += self._expire(run, until, now)
                self._rest(begun)
        # What stays of a run is not looked at again before more of it is old enough.
        self._looked = self._store.keeping.expirable(until) if count else expirable
        return count

    def _expire(self, run: str, until: int, now: int) -> int:
        keeping = self._store.keeping
        found = expiry(
            run,
            keeping.of_run(run),
            keeping.segments(run).get(run, []),
            until=until,
            as_of=now,
        )
        if found is None:
            return 0
        if not found.same:
            _LOG.warning("raw steps of %r stay: without them its report would differ", run)
            return 0
        keeping.expire(run, found, now)
        self._ledgers.expire(run, found)
        return len(found.removed)

    def _rest(self, begun: float) -> None:
        """Leave the time to others, in proportion to what was taken since `begun`."""
        self._stopping.wait((time.thread_time() - begun) * (1 / _SHARE - 1))

    def _run(self) -> None:
        looks = 0
        while not self._stopping.wait(_SAY_SECONDS):
            for work in (self.say, *((self.expire,) if looks % _EXPIRE_EVERY == 0 else ())):
                try:
                    work()
                except Exception:
                    _LOG.exception("upkeep failed; it is tried again later")
            looks += 1
