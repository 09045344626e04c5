"""Completed steps of one rank as columns (rule 3): how blocks and summaries become rows.

A summary of n steps becomes n rows; cutting after j of n gives start + duration * j // n. Where it
names its longest step, that one keeps its duration and the others share the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headway.events import Steps, StepsSummary
from headway.ledger.intake import Stamped

Times = npt.NDArray[np.int64]
Losses = npt.NDArray[np.float64]

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


@dataclass(frozen=True, slots=True)
class StepRows:
    """Steps of one rank: shape (n,), int64, event time in ns; `detail` beats a summary.

    `loss` (NaN: unknown) and `samples` (-1: unknown) only come with detail and are lost by joining.
    """

    number: Times
    start: Times
    end: Times
    data_wait: Times
    detail: bool
    loss: Losses | None = None
    samples: Times | None = None

    @property
    def begin(self) -> int:
        """Start of the first step, or of the wait for its data."""
        return int(self.start[0] - self.data_wait[0])


def rows_of(event: Stamped, as_of: int) -> StepRows | None:
    """Return the steps of an event that ended by `as_of`; None if it holds none."""
    record = event.envelope.event
    if isinstance(record, Steps):
        rows = _detailed(record, event.shift)
    elif isinstance(record, StepsSummary):
        rows = _summarised(record, event.time)
    else:
        return None
    if event.time > as_of or rows.end[-1] > as_of:
        return select(rows, rows.end <= as_of)
    return rows


def select(rows: StepRows, mask: npt.NDArray[np.bool_]) -> StepRows | None:
    """Keep the rows of a mask of shape (n,); None if none is left."""
    if not mask.any():
        return None
    return StepRows(
        rows.number[mask],
        rows.start[mask],
        rows.end[mask],
        rows.data_wait[mask],
        rows.detail,
        None if rows.loss is None else rows.loss[mask],
        None if rows.samples is None else rows.samples[mask],
    )


def _detailed(record: Steps, shift: int) -> StepRows:
    block = np.frombuffer(record.packed, BLOCK)
    start = block["start"] + np.int64(shift)
    number = np.arange(record.first_step, record.first_step + len(block), dtype=np.int64)
    duration = np.maximum(block["duration"], 0)
    wait = np.maximum(block["data_wait"], 0)
    return StepRows(number, start, start + duration, wait, True, block["loss"], block["samples"])


def _summarised(record: StepsSummary, end: int) -> StepRows:
    count = record.num_steps
    cuts = np.arange(count + 1, dtype=np.int64)
    edges = np.int64(end - record.duration) + _shares(record.duration, cuts, count)
    longest, step = record.longest, record.longest_step
    if longest is not None and step is not None and count > 1:
        index = step - record.first_step
        if 0 <= index < count and longest <= record.duration:
            rest = _shares(record.duration - longest, np.minimum(cuts, count - 1), count - 1)
            before = _shares(record.duration - longest, np.maximum(cuts - 1, 0), count - 1)
            edges = np.int64(end - record.duration) + np.where(
                cuts <= index, rest, before + longest
            )
    waits = np.zeros(count, dtype=np.int64)
    if record.data_wait:
        waits = np.diff(_shares(record.data_wait, cuts, count))
    start = np.minimum(edges[:-1] + waits, edges[1:])
    number = np.arange(record.first_step, record.first_step + count, dtype=np.int64)
    return StepRows(number, start, edges[1:], waits, False)


def _shares(total: int, cuts: Times, count: int) -> Times:
    """Return total * j // count for each j without overflow."""
    whole, rest = divmod(total, count)
    return whole * cuts + rest * cuts // count


def joined(parts: Sequence[StepRows]) -> StepRows | None:
    """Join the rows of one rank in order of time; a detailed row replaces a summarised one.

    Returns None where there is no row.
    """
    if not parts:
        return None
    detailed = [part for part in parts if part.detail]
    coarse = [part for part in parts if not part.detail]
    if detailed and coarse:
        known = np.concatenate([part.number for part in detailed])
        kept = (select(part, ~np.isin(part.number, known)) for part in coarse)
        coarse = [part for part in kept if part is not None]
    chosen = detailed + coarse
    columns = [
        np.concatenate([getattr(part, name) for part in chosen])
        for name in ("number", "start", "end", "data_wait")
    ]
    order = np.argsort(columns[2], kind="stable")
    if not np.all(order[1:] > order[:-1]):
        columns = [column[order] for column in columns]
    return StepRows(columns[0], columns[1], columns[2], columns[3], bool(detailed))
