"""The collector's answers, kept with their versions and asked for once for all viewers.

An answer lives a second. After that the collector is asked whether it still holds, which costs an
empty reply where nothing changed. A page that is only just opened takes what is known of the last
half minute at once, while the collector is asked behind its back (stale-while-revalidate, RFC
5861). While nobody answers, the last answer stands, and the reading that took it knows why it is
old.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from headway.storage.client import CollectorClient
from headway.storage.collector_errors import CollectorError, CollectorTimedOut, CollectorUnreachable
from headway.storage.connection import Change

LIFETIME = 1.0
"""Seconds for which an answer, or the news that there is none, is not asked for again."""
AT_ONCE = 30.0
"""Seconds up to which a known answer is taken at once where that is wanted."""
_YOUNG = 5.0
"""Seconds for which such an answer needs no renewal: the page itself looks again as soon."""
_MOST = 128
_RENEWED_AT_ONCE = 4
"""Answers that are asked for behind the pages' back at the same time."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """An answer as the collector last gave or confirmed it, at `asked` on the monotonic clock."""

    content: dict[str, Any]
    version: str | None
    asked: float
    as_of: int | None


@dataclass(slots=True)
class _Kept:
    """The place of one answer; its lock makes the others wait while one viewer asks."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    known: _Known | None = None
    doubtful: bool = False
    failed: float | None = None
    error: CollectorError | None = None


_reading: ContextVar[Reading | None] = ContextVar("reading", default=None)
_hasty: ContextVar[bool] = ContextVar("hasty", default=False)


@contextmanager
def reading() -> Iterator[Reading]:
    """Collect what the answers taken in this block have to say about themselves."""
    found = Reading()
    token = _reading.set(found)
    try:
        yield found
    finally:
        _reading.reset(token)


@contextmanager
def hasty(wanted: bool = True) -> Iterator[None]:
    """Take answers of the last half minute at once in this block, and let them be renewed."""
    token = _hasty.set(wanted)
    try:
        yield
    finally:
        _hasty.reset(token)


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
        self._renewing = ThreadPoolExecutor(_RENEWED_AT_ONCE, thread_name_prefix="renewing")

    def close(self) -> None:
        """Close the connections."""
        self._renewing.shutdown(cancel_futures=True)
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
        known = kept.known
        if known is not None and _hasty.get() and self._will_do(kept, known):
            trouble = kept.error
            if self._clock() - known.asked >= _YOUNG and not kept.lock.locked():
                self._renewing.submit(self._renew, kept, path, query)
        else:
            with kept.lock:
                trouble = self._refresh(kept, path, query)
                known = kept.known
            if known is None:
                assert trouble is not None  # noqa: S101  # either an answer or a reason
                raise trouble
        _tell(trouble, known)
        return known.content

    def _will_do(self, kept: _Kept, known: _Known) -> bool:
        return not kept.doubtful and self._clock() - known.asked < AT_ONCE

    def _renew(self, kept: _Kept, path: str, query: Mapping[str, Any]) -> None:
        with suppress(CollectorError), kept.lock:  # who asks next is told
            self._refresh(kept, path, query)

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
        now, known = self._clock(), kept.known
        if known is not None and not kept.doubtful and now - known.asked < LIFETIME:
            return None
        if kept.error is not None and kept.failed is not None and now - kept.failed < LIFETIME:
            return kept.error
        if self._down is not None and now - self._down[0] < LIFETIME:
            return self._down[1]  # a collector that hangs is not asked for each part of a page
        doubtful, kept.doubtful = kept.doubtful, False  # before it is asked: a doubt from then on
        try:
            found = self.client.changed(path, query, None if known is None else known.version)
        except CollectorUnreachable as error:
            kept.doubtful |= doubtful
            kept.failed, kept.error = self._clock(), error
            if not isinstance(error, CollectorTimedOut):
                self._down = self._clock(), error
            return error
        except CollectorError:
            kept.known = None  # what it said before holds no longer
            raise
        self._down = kept.error = None
        kept.known = self._known_by(found, known)
        return None

    def _known_by(self, found: Change, known: _Known | None) -> _Known:
        """Return an answer as the collector now gives or confirms it."""
        if found.content is not None:
            content, version = found.content, found.version
        else:
            assert known is not None  # noqa: S101  # nothing is confirmed that was not there
            content, version = known.content, known.version
        as_of = content.get("as_of") if found.as_of is None else found.as_of
        return _Known(content=content, version=version, asked=self._clock(), as_of=as_of)


def _tell(trouble: CollectorError | None, known: _Known) -> None:
    found = _reading.get()
    if found is None:
        return
    found.trouble = trouble or found.trouble
    found.asked = known.asked if found.asked is None else min(found.asked, known.asked)
    if known.as_of is not None:
        found.as_of = known.as_of if found.as_of is None else max(found.as_of, known.as_of)
