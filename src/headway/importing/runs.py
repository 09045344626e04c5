"""Many plain lines of progress at a time: what only continues is taken column by column.

It says the same as `progress` line by line, and leaves every line to it that is not the next one
of the same attempt.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from headway.importing.blocks import LONGEST, MOST_LINES, PAUSE, Block
from headway.importing.course import Course
from headway.importing.lanes import Lane
from headway.importing.sayings import StepRun
from headway.importing.stamps import SECOND, Stamps

_HOUR, _STAMP = len("2026-11-29 08"), len("2026-11-29 08:00:00")


def go_on(course: Course, lane: Lane, run: StepRun, first: int, stamps: Stamps) -> int:
    """Take lines from `first` on while each is the next one of its lane; return how many."""
    interval, last, block = course.interval, lane.last_step, lane.block
    if (
        interval is None
        or last is None
        or block is None
        or lane.form != run.form
        or course.target != run.target
        or lane.phase is not None
        or lane.begun is None
        or lane.begun > lane.now
        or course.held is not None
        or lane.attempt != course.attempt.number
    ):
        return 0
    count = _fitting(run, first, last, interval)
    moments = _moments(run.stamps[first : first + count], stamps, course.journal.shift is not None)
    count = count if moments is None else len(moments)
    if not count:
        return 0
    durations = (run.per_step[first : first + count] * interval).tolist()
    ends, spent = _times(moments, durations, lane.now)
    _extend(course, lane, run, first, ends, spent)
    newest = first + count - 1
    lane.now = lane.mark = ends[-1]
    lane.last_step = run.steps[newest]
    lane.pace = next((one // interval for one in reversed(spent) if one), lane.pace)
    lane.evaluated = False
    lane.traceback = 0
    lane.last_line = run.texts[newest]
    attempt = course.attempts[lane.attempt]
    attempt.progressed, attempt.ended = True, False
    attempt.findings.last_step = lane.last_step
    attempt.findings.step_time += sum(spent)
    course.completed_at = None
    course.findings.steps_after_stop += count if course.stopped else 0
    course.findings.run(run, first, newest, interval, spent)
    return count


def _fitting(run: StepRun, first: int, last: int, interval: int) -> int:
    """Return how many lines go on from the step `last` one after the other."""
    steps, durations = run.steps[first:], run.per_step[first:]
    due = range(last + interval, last + interval * (len(steps) + 1), interval)
    count = len(steps)
    if steps != list(due):
        count = next(n for n, step in enumerate(steps) if step != due[n])
    absurd = np.flatnonzero(durations > LONGEST // interval)
    return min(count, int(absurd[0])) if len(absurd) else count


def _moments(texts: Sequence[str], stamps: Stamps, dated: bool) -> list[int] | None:
    """Return the times of lines in ns, up to the first that cannot be read; None for no stamps."""
    if not any(texts):
        return None
    count = next((n for n, text in enumerate(texts) if not text), len(texts))
    digits = np.frombuffer("".join(texts[:count]).encode(), dtype=np.uint8)
    shown = digits.reshape(count, _STAMP).astype(np.int64) - ord("0")
    seconds = (shown[:, 14] * 10 + shown[:, 15]) * 60 + shown[:, 17] * 10 + shown[:, 18]
    changes = np.flatnonzero((shown[1:, :_HOUR] != shown[:-1, :_HOUR]).any(axis=1)) + 1
    found: list[int] = []
    for low, high in pairwise([0, *changes.tolist(), count]):
        hour = stamps.second(f"{texts[low][:_HOUR]}:00:00") if dated else None
        if hour is None:
            break
        found += (seconds[low:high] * SECOND + hour).tolist()
    return found


def _times(
    moments: Sequence[int] | None, durations: Sequence[int], now: int
) -> tuple[list[int], list[int]]:
    """Return the end of each line's steps and how long they took, from `now` on; all in ns."""
    if moments is None:
        return list(accumulate(durations, initial=now))[1:], list(durations)
    ends, spent = [], []
    for moment, took in zip(moments, durations, strict=True):
        end = now + took
        if end < moment:
            end = moment
        elif end >= moment + SECOND:
            end = max(moment + SECOND - 1, now)
        ends.append(end)
        spent.append(took if took < end - now else end - now)
        now = end
    return ends, spent


def _extend(
    course: Course, lane: Lane, run: StepRun, first: int, ends: Sequence[int], spent: Sequence[int]
) -> None:
    """Add the lines to the open block and to new ones, as one by one they would be."""
    block, interval = lane.block, course.interval
    if block is None or interval is None:
        return
    edges = np.array([block.end, *ends], dtype=np.int64)
    pauses = np.flatnonzero(np.abs(np.diff(edges) - spent) > PAUSE).tolist()
    cuts = _cuts(block.lines, pauses, len(ends))
    for low, high in pairwise([*([] if cuts[:1] == [0] else [0]), *cuts, len(ends)]):
        place = low
        if low in cuts:
            course.flush(lane)
            step = run.steps[first + low]
            alone = interval == 1
            block = lane.block = Block(
                step - interval + 1,
                step,
                ends[low] - spent[low],
                ends[low],
                spent[low],
                spent[low] if alone else None,
                step if alone else None,
                run.losses[first + low],
                int(run.samples[first + low]),
            )
            place += 1
        if place < high:
            block.extend_run(
                run.steps[first + place : first + high],
                ends[high - 1],
                spent[place:high],
                run.losses[first + high - 1],
                int(run.samples[first + high - 1]),
            )


def _cuts(lines: int, pauses: Sequence[int], count: int) -> list[int]:
    """Return before which lines a block ends: at pauses, and where it is full.

    `lines` are in the block that is open before the first of them.
    """
    found = []
    begin = -lines
    for stop in [*pauses, count]:
        while begin + MOST_LINES < stop:
            begin += MOST_LINES
            found.append(begin)
        if stop < count:
            found.append(stop)
            begin = stop
    return found
