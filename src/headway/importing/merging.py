"""The lines of several files of one run in the order of time.

A file's lines keep their order. What no stamp dates yet comes where its file's first stamp stands:
files without any stamp come first and follow each other as they are given.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from headway.importing.reader import LineReader
from headway.importing.rules import Format
from headway.importing.sayings import Saying
from headway.importing.stamps import Moment, Stamps


class Told(NamedTuple):
    """What a line said, with its time and rank as far as it tells them."""

    time: int
    saying: Saying
    moment: Moment | None
    rank: int | None
    text: str


class Stream:
    """One file's lines."""

    def __init__(
        self,
        pieces: Iterable[str],
        formats: Iterable[Format],
        stamps: Stamps,
        rank: int | None = None,
        *,
        alone: bool = False,
        growing: bool = False,
        since: int = 0,
    ) -> None:
        """Read `pieces` of text; `rank` is the file's, for lines that name none.

        A file that is `alone` need not be merged with others line by line; of one that is
        `growing` a last line without its end is left for the next time.
        Lines before its first stamp have their place at `since`.
        """
        self._pieces = pieces
        self._rank = rank
        self._growing = growing
        self._found: deque[Told] = deque()
        self._time = since
        self._dated = False
        self.reader = LineReader(formats, stamps, self._take, in_runs=alone)

    def _take(self, saying: Saying, moment: Moment | None, rank: int | None, text: str) -> None:
        if moment is not None:
            self._time = max(self._time, moment.time) if self._dated else moment.time
            self._dated = True
        rank = self._rank if rank is None else rank
        self._found.append(Told(self._time, saying, moment, rank, text))

    def __iter__(self) -> Iterator[Told]:
        """Yield what the lines say."""
        for piece in self._pieces:
            self.reader.feed(piece)
            while self._found:
                yield self._found.popleft()
        if self._growing:
            self.reader.leave()
        self.reader.feed("", final=True)
        while self._found:
            yield self._found.popleft()


def merged(streams: Iterable[Iterable[Told]]) -> Iterator[Told]:
    """Yield what the lines of all files say, in the order of time."""
    every = list(streams)
    if len(every) == 1:
        return iter(every[0])
    return heapq.merge(*every, key=_time)


def _time(told: Told) -> int:
    return told.time
