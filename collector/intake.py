"""What is on its way into the store, so that memory has a bound, and what became of requests."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from headway.collector.ingest import Busy

OUTCOMES = ("taken", "malformed", "unknown_form", "too_large", "busy", "gone")
"""What becomes of a request; a sender that is `gone` left before its body was here."""


class Intake:
    """Bytes of all requests from their first piece until their commit; for one event loop."""

    def __init__(self, limit: int) -> None:
        """Start empty; `limit` is in bytes, inflated."""
        self.size = 0
        self.requests = Counter(dict.fromkeys(OUTCOMES, 0))
        self._limit = limit

    @contextmanager
    def admission(self) -> Iterator["Admission"]:
        """Give a request its place, until the block ends."""
        admission = Admission(self)
        try:
            yield admission
        finally:
            self.size -= admission.size

    def take(self, more: int, own: int) -> None:
        """Make room for more bytes of a request that has `own` already.

        Raises:
            Busy: it is too much. A request that is alone is never too much.
        """
        if self.size > own and self.size + more > self._limit:
            raise Busy(f"{self.size} bytes of requests are on their way into the store")
        self.size += more


class Admission:
    """The place of one request."""

    def __init__(self, intake: Intake) -> None:
        self.size = 0
        self._intake = intake

    def grow(self, size: int) -> None:
        """Hold so many bytes from now on.

        Raises:
            Busy: there is no room.
        """
        self._intake.take(size - self.size, self.size)
        self.size = size
