"""Work that may take long or never return, such as a request, kept off the agent's own thread."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Errand(Generic[T]):
    """Runs a job at an interval in seconds; one that does not come back is not sent again."""

    def __init__(
        self,
        job: Callable[[], T],
        interval: float,
        *,
        name: str,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Prepare; `name` is the thread's, `monotonic` gives ns."""
        self._job = job
        self._interval = round(interval * 1e9)
        self._name = name
        self._monotonic = monotonic
        self._due: int | None = None
        self._thread: threading.Thread | None = None
        self._results: list[tuple[int, T]] = []
        self._failing = False

    def poll(self) -> list[tuple[int, T]]:
        """Return what came back since the last look with its time, and send again when due."""
        if self._thread is not None and not self._thread.is_alive():
            self._thread = None
        results, self._results = self._results, []
        now = self._monotonic()
        if self._thread is None and (self._due is None or now >= self._due):
            self._due = now + self._interval
            # A daemon, since a read of a dead device must not hold up the agent's end.
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return results

    def close(self, seconds: float) -> None:
        """Wait for the job under way for so many seconds at most."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        try:
            result = self._job()
        except Exception:
            if not self._failing:
                _log.exception("%s failed; it is tried again", self._name)
            self._failing = True
        else:
            self._failing = False
            self._results.append((self._monotonic(), result))
