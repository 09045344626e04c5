"""One thread commits what requests bring, many requests in one transaction.

A request is acknowledged only after its commit. Requests that arrive during a commit share the
next one, so the rate grows with the load; how much may wait is bounded where it comes in.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from headway.blocks import Part
from headway.collector.lags import Lags
from headway.collector.otlp.decoded import Decoded
from headway.settings import CollectorSettings
from headway.storage.store import EventStore, StoreError

_LOG = logging.getLogger(__name__)

_TRY_AGAIN = 1.0
"""Seconds between two tries to write while commits fail and no request comes to try it."""
OUTCOMES = ("stored", "duplicate", "quarantined", "refused")


class Busy(RuntimeError):  # noqa: N818  # the condition reads as a name
    """No more can be taken now; later it can."""


@dataclass(slots=True)
class _Waiting:
    """One request that waits for its commit."""

    decoded: Decoded
    done: Future[None] = field(default_factory=Future)


class Committer:
    """The only writer of the store; hands what is stored on to `publish`."""

    def __init__(
        self,
        store: EventStore,
        settings: CollectorSettings,
        publish: Callable[[Sequence[Part]], None],
        clock: Callable[[], int],
    ) -> None:
        """Start the thread; `publish` is called after each commit, before it is acknowledged.

        `clock` gives the time in UTC ns.
        """
        self.lags = Lags(clock)
        self._store = store
        self._settings = settings
        self._publish = publish
        self._condition = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._num_waiting = 0
        self._closed = False
        self._failure: str | None = None
        self._counts = Counter(dict.fromkeys(OUTCOMES, 0))
        self._thread = threading.Thread(target=self._run, name="headway-commit", daemon=True)
        self._thread.start()

    def submit(self, decoded: Decoded) -> Future[None]:
        """Queue a request; the future is done once it is stored or quarantined.

        Raises:
            Busy: the collector is stopping.
        """
        with self._condition:
            if self._closed:
                raise Busy("the collector is stopping")
            waiting = _Waiting(decoded)
            # From here on a client that goes away cannot cancel what will be stored.
            waiting.done.set_running_or_notify_cancel()
            self._waiting.append(waiting)
            self._num_waiting += decoded.num_records
            self._condition.notify()
        return waiting.done

    def counts(self) -> dict[str, int]:
        """Return the records received so far by what became of them."""
        with self._condition:
            return dict(self._counts)

    @property
    def failure(self) -> str | None:
        """Return why commits fail at present, None where they do not."""
        return self._failure

    def close(self) -> None:
        """Commit what waits and end the thread."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        committed = -self._settings.commit_interval
        while (taken := self._take(committed + self._settings.commit_interval)) is not None:
            if taken:
                self._commit(taken)
            else:
                self._try_writing()
            committed = time.monotonic()

    def _take(self, not_before: float) -> list[_Waiting] | None:
        """Wait for work, then for its time or enough of it; None means closed.

        Empty means that commits fail and that it is time to try.
        """
        with self._condition:
            patience = None if self._failure is None else _TRY_AGAIN
            self._condition.wait_for(lambda: self._waiting or self._closed, patience)
            if not self._waiting:
                return None if self._closed else []
            self._condition.wait_for(
                lambda: self._closed or self._num_waiting >= self._settings.commit_records,
                timeout=max(0.0, not_before - time.monotonic()),
            )
            taken, self._waiting = self._waiting, []
            self._num_waiting = 0
            return taken

    def _commit(self, taken: list[_Waiting]) -> None:
        parts = [part for waiting in taken for part in waiting.decoded.parts]
        quarantined = [item for waiting in taken for item in waiting.decoded.quarantined]
        try:
            appended = self._store.append(parts, quarantined)
        except Exception as error:
            # The thread must outlive any failure: without it nothing is stored any more. And one
            # request that cannot be stored must not hold up the others.
            if len(taken) > 1:
                for waiting in taken:
                    self._commit([waiting])
                return
            self._fails(error)
            self._finish(taken, Busy(f"the events could not be stored: {error}"))
            return
        self._succeeds()
        with self._condition:
            self._counts["stored"] += appended.num_stored
            self._counts["duplicate"] += appended.num_duplicate
            self._counts["quarantined"] += appended.num_quarantined
            self._counts["refused"] += sum(waiting.decoded.num_refused for waiting in taken)
        try:
            self.lags.add(appended.parts)
            self._publish(appended.parts)
        except Exception:
            # They are stored, as promised; the ledgers are rebuilt at the next start.
            _LOG.exception("stored events did not reach their ledgers; restart the collector")
        self._finish(taken, None)

    def _try_writing(self) -> None:
        """Find out whether commits work again: a proxy may send nothing before they do."""
        try:
            self._store.try_writing()
        except StoreError:
            return
        self._succeeds()

    def _fails(self, error: Exception) -> None:
        if self._failure is None:
            _LOG.error("a commit failed; clients are asked to send again", exc_info=error)
        self._failure = str(error)

    def _succeeds(self) -> None:
        if self._failure is not None:
            _LOG.warning("commits work again")
        self._failure = None

    def _finish(self, taken: list[_Waiting], error: Exception | None) -> None:
        for waiting in taken:
            if error is None:
                waiting.done.set_result(None)
            else:
                waiting.done.set_exception(error)
