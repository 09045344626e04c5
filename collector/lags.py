"""How long events were on their way: from the event itself until it was durable."""

import threading
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from headway.blocks import Block, Part

QUANTILES = (0.5, 0.99, 1.0)
_WINDOW = 60 * 10**9
_MOST = 1000
"""Lags kept of one commit, evenly among all of them."""


class Lags:
    """The lags of what was committed in the last minute."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """Start without any; `clock` gives the time in UTC ns."""
        self._clock = clock
        self._lock = threading.Lock()
        self._commits: deque[tuple[int, np.ndarray[tuple[int], np.dtype[np.float64]]]] = deque()

    def add(self, parts: Sequence[Part]) -> None:
        """Take what was just committed; an event of the future, by its node's clock, has lag 0."""
        if not parts:
            return
        now = self._clock()
        times = np.concatenate([_times(part) for part in parts])
        lags = np.sort(np.maximum(now - times, 0.0))
        if len(lags) > _MOST:
            lags = lags[np.linspace(0, len(lags) - 1, _MOST).round().astype(np.int64)]
        with self._lock:
            self._commits.append((now, lags))
            self._forget(now)

    def quantiles(self) -> dict[float, float]:
        """Return the lag in ns at each of `QUANTILES`; empty where nothing was committed lately."""
        with self._lock:
            self._forget(self._clock())
            found = [lags for _, lags in self._commits]
        if not found:
            return {}
        values = np.quantile(np.concatenate(found), QUANTILES)
        return dict(zip(QUANTILES, map(float, values), strict=True))

    def _forget(self, now: int) -> None:
        while self._commits and self._commits[0][0] <= now - _WINDOW:
            self._commits.popleft()


def _times(part: Part) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if not isinstance(part, Block):
        return np.array([part.anchor + part.monotonic], np.float64)
    times: np.ndarray[tuple[int], np.dtype[np.float64]] = np.array(
        part.record["monotonic"].of(part.count), np.float64
    )
    return times + float(part.producer["anchor"])
