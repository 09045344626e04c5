"""Completed steps of one rank as columns (rule 3): how blocks and summaries become rows.

A summary of n steps becomes n rows; cutting after j of n gives start + duration * j // n. Where its
longest step is over the limit, that one keeps its duration and the others share the rest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headway.events import Steps, StepsSummary
from headway.ledger.intake import Stamped

Times = npt.NDArray[np.int64]
Losses = npt.NDArray[np.float64]

STEPS = (Steps, StepsSummary)
"""Events that tell of completed steps."""
BLOCK = np.dtype(
    [
        ("start", "<i8"),
        ("duration", "<i8"),
        ("data_wait", "<i8"),
        ("loss", "<f8"),
        ("samples", "<i8"),
    ]
)
"""The layout of `headway.step_blocks`, version 1."""
MOST_JOINED = 1000
"""Steps up to which records are joined, so that few of them need not cost as much as many."""


@dataclass(frozen=True, slots=True)
class StepRows:
    """Steps of one rank: shape (n,), int64, event time in ns; `detail` beats a summary.

    The wait for data ends at a step's start; those of a summary lie at the head of each step.
    `longest` is position and duration of a summary's longest step, `record` begin and end of the
    whole summary where a finer record tells some of its steps. `loss` (NaN: unknown; of a summary
    shape (1,), the last step's) and `samples` (-1: unknown, and only with detail) are lost by
    joining.
    """

    number: Times
    start: Times
    end: Times
    data_wait: Times
    detail: bool
    longest: tuple[int, int] | None = None
    record: tuple[int, int] | None = None
    loss: Losses | None = None
    samples: Times | None = None

    @property
    def whole(self) -> tuple[int, int]:
        """Begin and end of the record that told of them."""
        return self.record or (int(self.start[0]), int(self.end[-1]))

    @property
    def reach(self) -> int:
        """Start of the first step, or of the wait for its data."""
        return int(self.start[0] - self.data_wait[0] if self.detail else self.start[0])


@dataclass(frozen=True, slots=True)
class Joined:
    """All steps of one rank in order of time; `part` is the summary that told of each, or -1."""

    number: Times
    start: Times
    end: Times
    data_wait: Times
    part: Times | None
    summaries: Sequence[StepRows]


def rows_of(event: Stamped, as_of: int) -> StepRows | None:
    """Return the steps of an event that ended by `as_of`; None if it holds none."""
    record = event.envelope.event
    if isinstance(record, Steps):
        rows = _detailed(record.first_step, record.packed, event.shift)
    elif isinstance(record, StepsSummary):
        rows = _summarised(record, event.time)
    else:
        return None
    if event.time > as_of or rows.end[-1] > as_of:
        return select(rows, rows.end <= as_of)
    return rows


class StepRun:
    """Records of consecutive steps of one rank, which are decoded together."""

    def __init__(self) -> None:
        self.events: list[Stamped] = []
        self._packed: list[bytes] = []
        self._first = self._next = 0
        self._key: tuple[str, int | None, int] | None = None

    def takes(self, event: Stamped) -> bool:
        """Take the next record, unless it does not follow those taken."""
        record = event.envelope.event
        if not isinstance(record, Steps):
            return False
        key = event.envelope.producer, event.envelope.rank, event.shift
        if self._key is None:
            self._key, self._first, self._next = key, record.first_step, record.first_step
        elif (
            key != self._key
            or record.first_step != self._next
            or self._next - self._first >= MOST_JOINED
        ):
            return False
        self.events.append(event)
        self._packed.append(record.packed)
        self._next += len(record.packed) // BLOCK.itemsize
        return True

    def rows(self, as_of: int) -> StepRows | None:
        """Return all steps taken; None if there is none, or one ended later or out of order."""
        if not self.events:
            return None
        rows = _detailed(self._first, b"".join(self._packed), self.events[0].shift)
        rising = (rows.start[1:] > rows.start[:-1]) & (rows.end[1:] > rows.end[:-1])
        return rows if rows.end[-1] <= as_of and rising.all() else None


def append(rows: list[StepRows], new: StepRows) -> None:
    """Add the next steps of a rank, to the last ones where those are few and these follow them."""
    last = rows[-1] if rows else None
    if (
        last is None
        or not (last.detail and new.detail)
        or last.loss is None
        or last.samples is None
        or new.loss is None
        or new.samples is None
        or len(last.number) + len(new.number) > MOST_JOINED
        or new.number[0] != last.number[-1] + 1
        or new.start[0] <= last.start[-1]
        or new.end[0] <= last.end[-1]
    ):
        rows.append(new)
        return
    rows[-1] = StepRows(
        np.concatenate([last.number, new.number]),
        np.concatenate([last.start, new.start]),
        np.concatenate([last.end, new.end]),
        np.concatenate([last.data_wait, new.data_wait]),
        True,
        loss=np.concatenate([last.loss, new.loss]),
        samples=np.concatenate([last.samples, new.samples]),
    )


def select(rows: StepRows, mask: npt.NDArray[np.bool_]) -> StepRows | None:
    """Keep the rows of a mask of shape (n,); None if none is left."""
    if not mask.any():
        return None
    loss = rows.loss
    if loss is not None and rows.detail:
        loss = loss[mask]
    elif not mask[-1]:
        loss = None
    return StepRows(
        rows.number[mask],
        rows.start[mask],
        rows.end[mask],
        rows.data_wait[mask],
        rows.detail,
        loss=loss,
        samples=None if rows.samples is None else rows.samples[mask],
    )


def _detailed(first: int, packed: bytes, shift: int) -> StepRows:
    block = np.frombuffer(packed, BLOCK)
    start = block["start"] + np.int64(shift)
    number = np.arange(first, first + len(block), dtype=np.int64)
    duration = np.maximum(block["duration"], 0)
    wait = np.maximum(block["data_wait"], 0)
    end, loss, samples = start + duration, block["loss"], block["samples"]
    return StepRows(number, start, end, wait, True, loss=loss, samples=samples)


def _summarised(record: StepsSummary, end: int) -> StepRows:
    count = record.num_steps
    cuts = np.arange(count + 1, dtype=np.int64)
    edges = np.int64(end - record.duration) + shares(record.duration, cuts, count)
    waits = np.broadcast_to(np.int64(0), count)
    if record.data_wait:
        waits = np.diff(shares(record.data_wait, cuts, count))
    number = np.arange(record.first_step, record.first_step + count, dtype=np.int64)
    longest = None
    if record.longest is not None and record.longest_step is not None and count > 1:
        position = record.longest_step - record.first_step
        if 0 <= position < count and record.longest <= record.duration:
            longest = position, record.longest
    loss = None
    if record.loss is not None:
        loss = np.array([record.loss])
    return StepRows(number, edges[:-1], edges[1:], waits, False, longest, loss=loss)


def stretched(rows: StepRows) -> StepRows:
    """Give a summary's longest step its own duration; the others share the rest."""
    if rows.longest is None:
        return rows
    position, longest = rows.longest
    count = len(rows.number)
    cuts = np.arange(count + 1, dtype=np.int64)
    begin = int(rows.start[0])
    rest = int(rows.end[-1]) - begin - longest
    before = shares(rest, np.minimum(cuts, count - 1), count - 1)
    after = shares(rest, np.maximum(cuts - 1, 0), count - 1) + longest
    edges = begin + np.where(cuts <= position, before, after)
    return replace(rows, start=edges[:-1], end=edges[1:], longest=None)


def shares(total: int, cuts: Times, count: int) -> Times:
    """Return total * j // count for each j without overflow."""
    whole, rest = divmod(total, count)
    return whole * cuts + rest * cuts // count


def joined(parts: Sequence[StepRows]) -> Joined | None:
    """Join the rows of one rank in order of time; the finest row wins where they overlap.

    Returns None where there is no row.
    """
    if not parts:
        return None
    detailed = [part for part in parts if part.detail]
    coarse = _finest(detailed, [part for part in parts if not part.detail])
    chosen = detailed + coarse
    only = chosen[0]
    if len(chosen) == 1 and not coarse and bool((only.end[1:] >= only.end[:-1]).all()):
        return Joined(only.number, only.start, only.end, only.data_wait, None, ())
    columns = [
        np.concatenate([getattr(part, name) for part in chosen])
        for name in ("number", "start", "end", "data_wait")
    ]
    if coarse:
        marks = [-1] * len(detailed) + list(range(len(coarse)))
        columns.append(np.repeat(marks, [len(part.number) for part in chosen]))
    order = np.argsort(columns[2], kind="stable")
    if not np.all(order[1:] > order[:-1]):
        columns = [column[order] for column in columns]
    number, start, end, wait = columns[:4]
    return Joined(number, start, end, wait, columns[4] if coarse else None, coarse)


def _finest(detailed: Sequence[StepRows], coarse: Sequence[StepRows]) -> list[StepRows]:
    """Return summaries without the steps that a finer record tells: detail, then the shorter."""
    if not coarse:
        return []
    found: list[StepRows] = []
    cluster: list[StepRows] = []
    reached = 0
    for part in sorted([*detailed, *coarse], key=lambda part: part.whole):
        begin, end = part.whole
        if cluster and begin >= reached:
            found += _without_repeats(cluster)
            cluster, reached = [], 0
        cluster.append(part)
        reached = max(reached, end)
    return found + _without_repeats(cluster)


def _without_repeats(cluster: Sequence[StepRows]) -> list[StepRows]:
    """Return the summaries of records that overlap without what a finer one tells."""
    coarse = [part for part in cluster if not part.detail]
    if len(cluster) == 1 or not coarse:
        return coarse
    found = []
    taken = [part.number for part in cluster if part.detail]
    for part in sorted(coarse, key=lambda part: (len(part.number), -part.whole[1])):
        known = np.isin(part.number, np.concatenate(taken)) if taken else np.zeros(1, dtype=bool)
        kept: StepRows | None = part
        if known.any():
            kept = select(part, ~known)
            kept = None if kept is None else replace(kept, record=part.whole)
        if kept is not None:
            found.append(kept)
            taken.append(kept.number)
    return found


def count_until(events: Iterable[Stamped], as_of: int) -> int:
    """Return how many of the steps and other records in events lie at or before a time."""
    count = 0
    for event in events:
        rows = rows_of(event, as_of)
        if isinstance(event.envelope.event, STEPS):
            count += 0 if rows is None else len(rows.number)
        elif event.time <= as_of:
            count += 1
    return count
