"""Lines of progress: which steps each completed, when, and whether they begin a new attempt."""

from headway.importing.blocks import LONGEST, Block
from headway.importing.course import Course
from headway.importing.lanes import Lane
from headway.importing.sayings import StepLine
from headway.importing.stamps import SECOND, Moment

_WEAK = ("bar", "deepspeed")
"""Kinds of lines that give way to any other kind that tells of the same steps."""
_IRREGULAR = ("event",)
"""Kinds of lines that come whenever something happens."""
_LOST_LINES = 2
"""Lines that may be missing without a stamp before the steps between count as unknown."""
_MOST_STEPS = 500_000
"""Steps that one line can tell of."""
_FITS = 0.6
_PAUSED = 1.5
"""How much longer than usual steps may take in a gap until part of it is no training."""


def progress(course: Course, lane: Lane, line: StepLine, moment: Moment | None, text: str) -> None:
    """Take a line of progress."""
    findings = course.findings
    findings.progress_lines += line.redrawn
    if _is_known(course, lane, line, text):
        course.date(lane, moment)
        return
    lane.last_line = text
    lane.form = line.form
    restarted = _restarted(lane, line)
    if restarted:
        findings.regressions += lane.last_step is not None and line.step <= lane.last_step
        if lane.attempt == course.attempt.number:
            course.begin_attempt(course.next_layer)
        else:
            course.enter(lane, lane.attempt + 1)
    course.settle(lane, moment, keep=True)
    phase, lane.phase = lane.phase, None
    course.primary = course.primary or lane
    covers = _covers(course, lane, line)
    before = lane.now
    end, duration, untimed = _times(course, lane, line, covers, moment)
    if lane.started:  # nothing of an attempt lies before what it has told already
        duration = min(duration, max(end - lane.mark, 0))
    if phase is not None:  # it ended where the step began
        lane.phase = phase
        course.close_phase(lane, max(end - duration - phase.began, 0))
    first = line.step - covers + 1
    attempt = course.attempts[lane.attempt]
    if not attempt.resumed and attempt.load is not None:
        name, step = attempt.load
        if step is not None and first - 1 <= step <= line.step:
            lane.now = min(before, end - duration)
            course.resumed(lane, step, name)
            covers = min(line.step - step, covers)
            first = line.step - covers + 1
    if covers > 0:
        _append(course, lane, line, first, end - duration, end)
    lane.now = lane.mark = end
    lane.last_step, lane.elapsed, lane.scope = line.step, line.elapsed, line.scope
    lane.evaluated = False
    lane.traceback = 0
    attempt.progressed, attempt.ended = True, False
    if covers > 0 and duration and not line.dispatch:
        lane.pace = duration // covers
    course.completed_at = None
    own = attempt.findings
    own.first_step = line.step - covers + 1 if own.first_step is None else own.first_step
    own.last_step = line.step
    own.step_time += duration
    own.untimed_steps += untimed
    findings.steps_after_stop += course.stopped
    findings.step(line, covers, None if untimed else duration)


def _is_known(course: Course, lane: Lane, line: StepLine, text: str) -> bool:
    """Whether a line tells nothing new: a redraw, the same line again, or the same steps."""
    if lane.last_step is None or lane.attempt != course.attempt.number:
        return False
    if text == lane.last_line and not line.redrawn:
        return True
    if line.redrawn and line.form == lane.form and line.scope == lane.scope:
        falls = (
            lane.elapsed is not None and line.elapsed is not None and line.elapsed < lane.elapsed
        )
        return line.step == lane.last_step and not falls
    if line.form != lane.form:
        if line.form in _WEAK and lane.form not in _WEAK:
            return True
        return line.step <= lane.last_step
    return False


def _restarted(lane: Lane, line: StepLine) -> bool:
    if lane.last_step is None or line.form != lane.form:
        return False
    if line.step <= lane.last_step:
        return True
    return _falls(lane, line) and line.scope == lane.scope


def _falls(lane: Lane, line: StepLine) -> bool:
    """Whether a counter of elapsed time began again."""
    return line.elapsed is not None and lane.elapsed is not None and line.elapsed < lane.elapsed


def _covers(course: Course, lane: Lane, line: StepLine) -> int:
    """Return how many steps up to a line's it tells of; of an absurd number only the last."""
    found = _told(course, lane, line)
    return found if found <= _MOST_STEPS else 1


def _told(course: Course, lane: Lane, line: StepLine) -> int:
    if lane.last_step is not None and line.step > lane.last_step:
        between = line.step - lane.last_step
        if (
            line.redrawn
            or line.form in _IRREGULAR
            or course.interval is None
            or between <= course.interval
        ):
            return between
        return course.interval  # `_times` decides on the rest
    base = course.attempts[lane.attempt].base
    if base is not None and base <= line.step:
        return line.step - base
    if line.covers is not None:
        return line.covers
    return min(course.interval or 1, line.step)


def _times(
    course: Course, lane: Lane, line: StepLine, covers: int, moment: Moment | None
) -> tuple[int, int, bool]:
    """Return when a line's steps ended, how long they took, and whether that is unknown."""
    took: int | None = None
    if line.per_step is not None and not line.dispatch:
        took = covers * line.per_step
    elif line.elapsed is not None:
        if lane.elapsed is not None and line.elapsed >= lane.elapsed:
            took = line.elapsed - lane.elapsed
        elif line.covers is not None:
            took = line.elapsed
    if took is not None and took > LONGEST:
        took = None  # a torn or foreign number
    since = lane.mark
    guessed = took if took is not None else min((lane.pace or 0) * covers, LONGEST)
    if moment is None:
        _lost_lines(course, lane, line, covers, None, guessed)
        return lane.now + guessed, guessed, took is None
    lane.now += guessed if course.journal.shift is None or took is not None else 0
    end = course.date(lane, moment)
    since = lane.mark
    if took is None:
        took = max(end - since, 0)
    _lost_lines(course, lane, line, covers, end - took, took)
    if line.per_step is None and lane.mark > since:
        took = max(end - lane.mark, 0)
    return end, took, False


def _lost_lines(
    course: Course, lane: Lane, line: StepLine, covers: int, start: int | None, took: int
) -> None:
    """Tell of the steps between two lines that other lines would have told of.

    They count as done where the time between fits them, or where a line or two are missing.
    """
    if lane.last_step is None:
        return
    missing = line.step - covers - lane.last_step
    if missing <= 0:
        return
    course.findings.gap(line.printed - (line.step - lane.last_step), line.printed)
    pace = lane.pace or (took // covers if covers else 0)
    needed = min(missing * pace, LONGEST)
    if start is None:
        if missing > _LOST_LINES * covers:
            course.flush(lane)
            return
        begin, end = lane.now, lane.now + needed
        lane.now = end
    else:
        if line.per_step is None:  # its own time is part of what lies between
            share = (start + took - lane.mark) * missing // (missing + covers)
            begin, end = lane.mark, lane.mark + share
        else:
            begin, end = lane.mark, start
        room = end - begin
        if not pace or room < _FITS * needed or missing > _MOST_STEPS:
            course.flush(lane)
            return
        if room > _PAUSED * needed:
            begin = end - needed
    filler = line._replace(loss=None, samples=None)
    _append(course, lane, filler, lane.last_step + 1, begin, end, last=lane.last_step + missing)
    lane.mark = max(lane.mark, end)


def _append(
    course: Course,
    lane: Lane,
    line: StepLine,
    first: int,
    start: int,
    end: int,
    last: int | None = None,
) -> None:
    """Add steps to those that wait to be recorded."""
    last = line.step if last is None else last
    start = min(max(start, 0) if course.journal.shift is not None else start, end)
    if lane.begun is not None:
        start, end = max(start, lane.begun), max(end, lane.begun)
    own = end - start
    block = lane.block
    if block is not None and block.takes(first, start):
        block.extend(last, end, own, line.loss, line.samples)
        return
    course.flush(lane)
    course.start(lane, start)
    single = last == first
    lane.block = Block(
        first,
        last,
        start,
        end,
        own,
        own if single else None,
        last if single else None,
        line.loss,
        line.samples,
    )


def complete(course: Course, lane: Lane, step: int, moment: Moment | None) -> None:
    """Take the word of a save that steps up to its own were completed."""
    if lane.last_step is None or step <= lane.last_step:
        return
    between = step - lane.last_step
    if course.interval is not None and between > course.interval:
        return  # the log says nothing about what lies between
    usual = min((lane.pace or 0) * between, LONGEST)
    if moment is None or course.journal.shift is None:
        begin, end = lane.now, lane.now + usual
    else:
        end = course.date(lane, moment)
        begin = max(lane.mark, end - max(usual, SECOND))
    line = StepLine(step=step, printed=step, form=lane.form)
    _append(course, lane, line, lane.last_step + 1, begin, end)
    lane.now = lane.mark = end
    lane.last_step = step
    findings = course.findings
    findings.highest = max(findings.highest or 0, step)
    course.attempts[lane.attempt].findings.last_step = step
