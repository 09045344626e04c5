"""One or several runs out of what the lines of logs say: looks ahead for the interval of the
lines of progress, and splits runs that follow each other in one log."""

from collections import Counter
from itertools import pairwise

from headway.importing.chronicle import Chronicle
from headway.importing.sayings import Configured, OfRun, Saying, StepLine, StepRun
from headway.importing.stamps import Moment, Stamps

_LOOK_AHEAD = 8
"""Lines of progress after which the interval between them is decided on."""
_MOST_HELD = 20_000
_LARGEST_INTERVAL = 10_000
"""Steps between two lines beyond which a gap is no interval."""


class LogImport:
    """Takes what the lines of a run's logs say, in the order of time."""

    def __init__(
        self,
        run: str,
        stamps: Stamps | None = None,
        interval: int | None = None,
        *,
        scope: str = "",
        look_ahead: int = _LOOK_AHEAD,
    ) -> None:
        """Begin with a run of this name.

        `stamps` reads those of lines taken together, `interval` is that of the lines of progress,
        where it is known. `scope` tells the attempts apart from those of other logs of the run,
        `look_ahead` lines of progress are seen before the interval is decided on.
        """
        self._scope = scope
        self._look_ahead = look_ahead
        self._interval = interval
        self._stamps = stamps or Stamps()
        self.name = run
        self.chronicles = [Chronicle(run, scope)]
        self._held: list[tuple[Saying, Moment | None, int | None, str]] | None = []
        self._seen: list[int] = []
        self._current = self.chronicles[0]
        self._named: dict[str, Chronicle] = {}

    def finish(self, start: int | None = None, relative: bool = False) -> list[Chronicle]:
        """Return the runs, now that the logs are over; `start` dates one without any stamp."""
        self._release()
        for chronicle in self.chronicles:
            chronicle.finish(start, relative)
        return self.chronicles

    def take(self, saying: Saying, moment: Moment | None, rank: int | None, text: str) -> None:
        """Take what the next line says."""
        if isinstance(saying, StepRun):
            self._run(saying, rank)
            return
        if self._held is None:
            self._pass(saying, moment, rank, text)
            return
        self._held.append((saying, moment, rank, text))
        if isinstance(saying, StepLine) and not saying.redrawn:
            self._seen.append(saying.step)
        told = isinstance(saying, Configured) and saying.name == "log_interval"
        if told or len(self._seen) >= self._look_ahead or len(self._held) >= _MOST_HELD:
            self._release()

    def _run(self, run: StepRun, rank: int | None) -> None:
        """Take lines of progress together as far as they only go on."""
        done = 0
        while done < len(run.texts):
            if self._held is None:
                taken = self._current.go_on(run, done, rank, self._stamps)
                done += taken
                if taken:
                    continue
            stamp = run.stamps[done]
            moment = self._stamps.read(stamp) if stamp else None
            self.take(run.line(done), moment, rank, run.texts[done])
            done += 1

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        course = self.chronicles[-1].course
        interval = self._interval or interval_of(self._seen)
        course.interval = course.findings.log_interval = interval
        for one in held:
            self._pass(*one)

    def _pass(self, saying: Saying, moment: Moment | None, rank: int | None, text: str) -> None:
        if isinstance(saying, OfRun):
            self._switch(saying.name)
            return
        newest = self._current
        if newest.starts_anew(saying):
            number = len(self.chronicles) + 1
            other = Chronicle(f"{self.name}-{number}", self._scope)
            interval = newest.course.interval
            other.course.interval = other.course.findings.log_interval = interval
            self.chronicles.append(other)
            newest = self._current = other
        newest.take(saying, moment, rank, text)

    def _switch(self, name: str) -> None:
        """Go on with the run of a name."""
        known = self._named.get(name)
        if known is None:
            known = self.chronicles[0]
            if self._named:
                known = Chronicle(f"{self.name}-{name}", self._scope)
                known.course.interval = self.chronicles[0].course.interval
                self.chronicles.append(known)
            self._named[name] = known
        self._current = known


def interval_of(steps: list[int]) -> int | None:
    """Return the usual distance of printed steps; None if there is none to see."""
    rises = Counter(b - a for a, b in pairwise(steps) if 0 < b - a <= _LARGEST_INTERVAL)
    if not rises:
        return None
    most = max(rises.values())
    return min(rise for rise, count in rises.items() if count == most)
