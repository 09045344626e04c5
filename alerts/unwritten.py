"""Notices that the book could not take: sent nevertheless, and written down once that can be.

Each goes one of the two ways: what is being sent is not written down meanwhile, nor what follows it
under its key, so that nobody is told twice, nor out of order, because a disk has room again.
"""

import threading
from collections.abc import Callable, Sequence

from headway.alerts.notices import Notice


class Unwritten:
    """Notices in their order, shared by who decides and who sends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._notices: list[Notice] = []
        self._sending: tuple[str, str] | None = None

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self._notices)

    def add(self, notices: Sequence[Notice]) -> None:
        """Take up notices that are not written down yet."""
        with self._lock:
            self._notices += notices

    def write(self, is_written: Callable[[Sequence[Notice]], bool]) -> None:
        """Let what nobody is being told of be written down; all stays where that fails."""
        with self._lock:
            free = [one for one in self._notices if _way(one) != self._sending]
            if is_written(free):
                self._notices = [one for one in self._notices if _way(one) == self._sending]

    def send(self, is_told: Callable[[Notice], bool]) -> None:
        """Send each; behind one that is not taken those of its key wait for the next time."""
        held: set[tuple[str, str]] = set()
        while (notice := self._next(held)) is not None:
            told = is_told(notice)
            with self._lock:
                self._sending = None
                if told:
                    self._notices = [one for one in self._notices if one is not notice]
                else:
                    held.add(_way(notice))

    def _next(self, held: set[tuple[str, str]]) -> Notice | None:
        with self._lock:
            for notice in self._notices:
                if _way(notice) not in held:
                    self._sending = _way(notice)
                    return notice
        return None


def _way(notice: Notice) -> tuple[str, str]:
    """Return the receiver and the key under which notices stay in order."""
    return notice.receiver, notice.key
