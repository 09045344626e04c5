"""The collector's answers, kept with their versions and asked for once for all viewers.

An answer lives a second. After that the collector is asked whether it still holds, which costs an
empty reply where nothing changed. While nobody answers, the last answer stands, and the reading
that took it knows why it is old.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from headway.storage.client import (
    CollectorClient,
    CollectorError,
    CollectorTimedOut,
    CollectorUnreachable,
)

LIFETIME = 1.0
"""Seconds for which an answer, or the news that there is none, is not asked for again."""
_MOST = 128

Query = tuple[tuple[str, Any], ...]


@dataclass(slots=True, kw_only=True)
class Reading:
    """What one drawing of a page was told beside the answers."""

    trouble: CollectorError | None = None
    """Why some answer is an old one."""
    asked: float | None = None
    """When the oldest answer was last confirmed, on the monotonic clock."""
    as_of: int | None = None
    """The newest time, UTC ns, up to which an answer says that it knows things."""


@dataclass(slots=True)
class _Kept:
    """One answer; its lock makes the others wait while one viewer asks."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    content: dict[str, Any] | None = None
    version: str | None = None
    asked: float = 0.0
    doubtful: bool = False
    failed: float | None = None
    error: CollectorError | None = None


_reading: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading() -> Iterator[Reading]:
    """Collect what the answers taken in this block have to say about themselves."""
    found = Reading()
    token = _reading.set(found)
    try:
        yield found
    finally:
        _reading.reset(token)


class Answers:
    """The answers of one collector; every viewer gets the same object and must not change it."""

    def __init__(
        self, client: CollectorClient, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start without any; `clock` gives seconds. What is no answer is asked of `client`."""
        self.client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, Query], _Kept] = OrderedDict()
        self._down: tuple[float, CollectorError] | None = None

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def doubt(self) -> None:
        """Ask again for whatever is wanted next, since somebody has just changed something."""
        with self._lock:
            for kept in self._kept.values():
                kept.doubtful = True

    def get(self, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question.

        Raises:
            CollectorError: no answer, neither a new one nor an old one.
        """
        kept = self._place(path, query)
        with kept.lock:
            trouble = self._refresh(kept, path, query)
            if kept.content is None:
                assert trouble is not None  # noqa: S101  # either there is an answer or a reason
                raise trouble
            content, asked = kept.content, kept.asked
        _tell(trouble, asked, content.get("as_of"))
        return content

    def _place(self, path: str, query: Mapping[str, Any]) -> _Kept:
        name = path, tuple(sorted(query.items()))
        with self._lock:
            kept = self._kept.setdefault(name, _Kept())
            self._kept.move_to_end(name)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return kept

    def _refresh(self, kept: _Kept, path: str, query: Mapping[str, Any]) -> CollectorError | None:
        """Make an answer young, or return why it cannot be."""
        now = self._clock()
        if kept.content is not None and not kept.doubtful and now - kept.asked < LIFETIME:
            return None
        if kept.error is not None and kept.failed is not None and now - kept.failed < LIFETIME:
            return kept.error
        if self._down is not None and now - self._down[0] < LIFETIME:
            return self._down[1]  # a collector that hangs is not asked for each part of a page
        try:
            changed = self.client.changed(path, query, kept.version)
        except CollectorUnreachable as error:
            kept.failed, kept.error = self._clock(), error
            if not isinstance(error, CollectorTimedOut):
                self._down = self._clock(), error
            return error
        except CollectorError:
            kept.content = kept.version = None  # what it said before holds no longer
            raise
        self._down = kept.error = None
        if changed is not None:
            kept.content, kept.version = changed
        kept.asked, kept.doubtful = self._clock(), False
        return None


def _tell(trouble: CollectorError | None, asked: float, as_of: int | None) -> None:
    found = _reading.get()
    if found is None:
        return
    found.trouble = trouble or found.trouble
    found.asked = asked if found.asked is None else min(found.asked, asked)
    if as_of is not None:
        found.as_of = as_of if found.as_of is None else max(found.as_of, as_of)
