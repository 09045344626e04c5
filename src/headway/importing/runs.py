"""Many plain lines of progress at a time: what only continues is taken in one loop.

It says the same as `progress` line by line, and leaves every line to it that is not the next one
of the same attempt.
"""

import math

from headway.importing.blocks import MOST_LINES, PAUSE, Block
from headway.importing.course import Course
from headway.importing.lanes import Lane
from headway.importing.stamps import SECOND, Stamps

_MILLISECOND = 10**6
_NOT_SKIPPED = "number of skipped iterations:   0 |"
_LOSS = "lm loss: "


def go_on(
    course: Course, lane: Lane, rows: list[tuple[str, ...]], first: int, stamps: Stamps
) -> int:
    """Take rows from `first` on while each is the next line of its lane; return how many.

    A row is stamp, step, target, samples, unit, time and the rest, as `StepRun` has it.
    """
    interval, last, block = course.interval, lane.last_step, lane.block
    dated = course.journal.shift is not None
    if (
        interval is None
        or last is None
        or block is None
        or lane.form != "iteration"
        or lane.phase is not None
        or course.held is not None
        or lane.attempt != course.attempt.number
    ):
        return 0
    findings = course.findings
    now, spent, number = lane.now, 0, first
    target = str(course.target)
    losses: list[float] = []
    paces: list[float] = []
    begin = last
    hour, zero = "", 0
    for number in range(first, len(rows)):
        stamp, step_text, goal, samples, unit, time, rest = rows[number]
        step = int(step_text)
        if step != last + interval or goal != target or _NOT_SKIPPED not in rest:
            break
        per_step = round(float(time) * (_MILLISECOND if unit == "ms" else SECOND))
        took = per_step * interval
        end = now + took
        if stamp:
            if not dated:
                break
            if stamp[:13] != hour:
                hour = stamp[:13]
                whole = stamps.second(f"{hour}:00:00")
                if whole is None:
                    break
                zero = whole
            moment = zero + (int(stamp[14:16]) * 60 + int(stamp[17:19])) * SECOND
            end = max(moment, min(end, moment + SECOND - 1))
        place = rest.find(_LOSS)
        if place < 0:
            break
        place += len(_LOSS)
        loss = float(rest[place : rest.index(" ", place)])
        if not math.isfinite(loss):
            break
        end = max(end, now)
        took = min(took, end - now)
        start = end - took
        if block.lines < MOST_LINES and -PAUSE <= start - block.end <= PAUSE:
            block.last = step
            block.end = max(block.end, end)
            block.loss = loss
            block.samples = int(samples)
            block.lines += 1
            if block.own is not None:
                block.own += took
            if interval == 1 and block.longest is not None:
                if took > block.longest:
                    block.longest, block.longest_step = took, step
            else:
                block.longest = block.longest_step = None
        else:
            lane.block = block
            course.flush(lane)
            single = interval == 1
            block = Block(
                last + 1,
                step,
                start,
                end,
                took,
                took if single else None,
                step if single else None,
                loss,
                int(samples),
            )
        lane.block = block
        now, last = end, step
        spent += took
        losses.append(loss)
        paces.append(per_step / SECOND)
    else:
        number = len(rows)
    taken = number - first
    if not taken:
        return 0
    lane.now = lane.mark = now
    lane.last_step = last
    lane.pace = round(paces[-1] * SECOND)
    lane.evaluated = False
    lane.traceback = 0
    lane.last_line = " ".join(rows[number - 1])
    attempt = course.attempts[lane.attempt]
    attempt.progressed, attempt.ended = True, False
    attempt.findings.last_step = last
    attempt.findings.step_time += spent
    course.completed_at = None
    findings.steps_after_stop += taken if course.stopped else 0
    findings.run(begin + interval, last, interval, spent, losses, paces)
    return taken
