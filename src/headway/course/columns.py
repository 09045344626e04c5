"""Time divided into equal columns, and how much of each some stretches cover. Exact, in ns."""

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]


def edges(start: int, end: int, columns: int) -> Times:
    """Return the edges of equal columns between two times; shape (columns + 1,).

    Fewer where the stretch holds fewer ns than that.
    """
    columns = max(min(columns, end - start), 1)
    whole, rest = divmod(end - start, columns)
    count = np.arange(columns + 1, dtype=np.int64)
    return start + whole * count + rest * count // columns


def covered(starts: Times, ends: Times, cuts: Times) -> Times:
    """Return the time that sorted, disjoint stretches of shape (n,) cover in each column.

    `cuts` are the edges of m columns, shape (m + 1,). Stretches 0-4 and 6-9 cover 4, 1 and 2 of
    columns cut at 0, 5, 7 and 10.
    """
    if not len(starts):
        return np.zeros(len(cuts) - 1, dtype=np.int64)
    sums = np.concatenate([[0], np.cumsum(ends - starts)])
    begun = np.searchsorted(starts, cuts, side="right")
    beyond = np.maximum(ends[np.maximum(begun - 1, 0)] - cuts, 0)
    found: Times = np.diff(sums[begun] - np.where(begun > 0, beyond, 0))
    return found


def disjoint(starts: Times, ends: Times) -> tuple[Times, Times]:
    """Return stretches, sorted by their ends, each clipped to where those before it ended."""
    if not len(starts):
        return starts, ends
    reached = np.maximum.accumulate(ends)
    begun = np.maximum(starts, np.concatenate([starts[:1], reached[:-1]]))
    return np.minimum(begun, reached), reached
