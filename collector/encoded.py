"""Encoded answers, each kept while its data version is the newest: computed once for all viewers.

Of those who ask the same at once, one computes and the others wait for it.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass

_MOST_BYTES = 64 * 2**20
"""Bytes of all bodies that are kept."""
_LARGEST = 4 * 2**20
"""Bytes of a body from which on only its tag is kept."""
_MOST_ANSWERS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """An answer as it is sent, and the tag that tells it from others; None is a body not kept."""

    body: bytes | None
    media_type: str
    tag: str


def encoded(body: bytes, media_type: str) -> Encoded:
    """Return a body with its tag."""
    tag = hashlib.blake2b(body, digest_size=12).hexdigest()
    return Encoded(body=body, media_type=media_type, tag=tag)


class EncodedAnswers:
    """The newest answers to questions, those that were asked longest ago are forgotten first."""

    def __init__(self, most_bytes: int = _MOST_BYTES, largest: int = _LARGEST) -> None:
        """Start empty; the bounds are in bytes."""
        self._most_bytes = most_bytes
        self._largest = largest
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, tuple[str, Encoded]] = OrderedDict()
        self._num_bytes = 0
        self._being_built: dict[tuple[Hashable, str], Future[Encoded]] = {}

    def known(self, question: Hashable, version: str) -> Encoded | None:
        """Return the answer to a question from data of this version, if it is kept."""
        with self._lock:
            kept = self._known.get(question)
            if kept is None or kept[0] != version:
                return None
            self._known.move_to_end(question)
            return kept[1]

    def build(self, question: Hashable, version: str, build: Callable[[], Encoded]) -> Encoded:
        """Return the answer from data of this version with its body, computed at most once.

        What `build` raises is raised to all who wait for it.
        """
        mine: Future[Encoded] = Future()
        with self._lock:
            kept = self._known.get(question)
            if kept is not None and kept[0] == version and kept[1].body is not None:
                return kept[1]
            others = self._being_built.setdefault((question, version), mine)
        if others is not mine:
            return others.result()
        try:
            found = build()
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            self._keep(question, version, found)
            mine.set_result(found)
            return found
        finally:  # only now, so that whoever comes finds one of the two
            with self._lock:
                del self._being_built[question, version]

    def _keep(self, question: Hashable, version: str, found: Encoded) -> None:
        if found.body is not None and len(found.body) > self._largest:
            found = Encoded(body=None, media_type=found.media_type, tag=found.tag)
        with self._lock:
            self._forget(question)
            self._known[question] = version, found
            self._num_bytes += len(found.body or b"")
            while self._num_bytes > self._most_bytes or len(self._known) > _MOST_ANSWERS:
                self._forget(next(iter(self._known)))

    def _forget(self, question: Hashable) -> None:
        if question in self._known:
            _, old = self._known.pop(question)
            self._num_bytes -= len(old.body or b"")
