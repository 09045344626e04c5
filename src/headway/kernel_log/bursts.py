"""Lines that say the same in one breath, united into one finding that counts them.

Two lines are of one burst when they name the same place, would be judged alike, and lie within
the window of their code: a GPU off the bus is told in two forms within five minutes, an exception
of a kernel in many lines within seconds, and one fault of a job may leave thousands of Xid 45.
The sequence of lines alone decides: the same log gives the same findings, however it is cut.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, fields, replace

from headway.events import GpuFault, GpuSxid, GpuXid
from headway.kernel_log.log import Finding, Report
from headway.kernel_log.oom import OomKill

_SECOND = 10**9
_OFF_THE_BUS = 79
_WINDOW = 15 * _SECOND
"""Greatest distance of two lines of a burst, from NVSentinel's burst of Xid 13."""
_OFF_THE_BUS_WINDOW = 300 * _SECOND
"""The same for a GPU that fell off the bus, as NVSentinel unites its two forms."""
_LONGEST = 300 * _SECOND
"""A burst that goes on for longer is told in parts."""
_MOST_KEPT = 4096
"""Bursts held at the same time; beyond, the oldest is given out."""
_MOST_ALIKE = 8
"""Bursts of one place and verdict to which a line can still belong."""


@dataclass(slots=True)
class Burst:
    """Lines that say the same, as far as they have come; times are ns of the log."""

    key: Hashable
    finding: Finding
    begin: int | None
    last: int | None
    window: int


class Bursts:
    """Unites the findings of a log that is complete, with bounded memory.

    A burst is held as long as there is room, so that the same fault is one also where a file holds
    several logs one after the other.
    """

    def __init__(self, most_kept: int = _MOST_KEPT) -> None:
        self._most_kept = most_kept
        self._kept: deque[Burst] = deque()
        """Every burst that was not given out, in the order of their first lines."""
        self._alike: dict[Hashable, deque[Burst]] = {}
        """Those of each place and verdict, the newest last."""
        self._now: int | None = None
        """Time of the newest line; one without any stamp counts as written then."""

    def add(self, finding: Finding) -> None:
        """Take the next finding of the log."""
        time = finding.time if finding.time is not None else finding.monotonic
        time = self._now if time is None else time
        self._now = time
        key = burst_key(finding.report)
        alike = self._alike.setdefault(key, deque(maxlen=_MOST_ALIKE))
        for burst in reversed(alike):
            if within(burst, time):
                burst.finding = united(burst.finding, finding)
                if time is not None:
                    burst.begin = time if burst.begin is None else burst.begin
                    burst.last = time if burst.last is None else max(burst.last, time)
                return
        burst = Burst(key, finding, time, time, burst_window(finding.report))
        alike.append(burst)
        self._kept.append(burst)

    def pop(self) -> list[Finding]:
        """Return the oldest findings as far as there is no room for them, each once."""
        done = []
        while len(self._kept) > self._most_kept:
            done.append(self._give_oldest())
        return done

    def pop_all(self) -> list[Finding]:
        """Return everything that is left, in the order of the first lines."""
        return [self._give_oldest() for _ in range(len(self._kept))]

    def _give_oldest(self) -> Finding:
        burst = self._kept.popleft()
        alike = self._alike[burst.key]
        if alike and alike[0] is burst:
            alike.popleft()
        if not alike:
            del self._alike[burst.key]
        return counted(burst.finding)


def within(burst: Burst, time: int | None) -> bool:
    """Return whether a line of this time still belongs to a burst."""
    if time is None or burst.begin is None or burst.last is None:
        return True
    return abs(time - burst.last) <= burst.window and abs(time - burst.begin) <= _LONGEST


def burst_window(report: Report) -> int:
    """Return how far two lines of a burst can be apart, in ns."""
    off = isinstance(report, GpuXid) and report.code == _OFF_THE_BUS
    off = off or (isinstance(report, GpuFault) and report.kind == "fallen_off_bus")
    return _OFF_THE_BUS_WINDOW if off else _WINDOW


def burst_key(report: Report) -> Hashable:
    """Return the place and everything that decides the class."""
    match report:
        case GpuXid(code=79) | GpuFault(kind="fallen_off_bus"):
            return (_OFF_THE_BUS, report.device)
        case GpuXid():
            return (
                "xid",
                report.device,
                report.gpu_instance,
                report.compute_instance,
                report.code,
                report.unit,
                report.error_status,
                report.sub_code,
                report.fatal,
                report.recovery_action,
            )
        case GpuSxid():
            return ("sxid", report.device, report.code)
        case GpuFault():
            return ("fault", report.device, report.kind)
        case OomKill():
            return ("oom", report.process_id)


def united(first: Finding, other: Finding) -> Finding:
    """Return the first finding with what only the other one knows, and the count of both."""
    report, further = first.report, other.report
    if isinstance(report, GpuFault) and isinstance(further, GpuXid):
        report = replace(further, line=report.line)  # the form with a number says more
    elif type(report) is type(further):
        missing = {
            field.name: getattr(further, field.name)
            for field in fields(report)
            if getattr(report, field.name) is None
        }
        report = replace(report, **missing)
    return replace(
        first,
        report=report,
        time=other.time if first.time is None else first.time,
        monotonic=other.monotonic if first.monotonic is None else first.monotonic,
        repeats=first.repeats + other.repeats,
    )


def counted(finding: Finding) -> Finding:
    """Return a finding whose event says how many lines it unites."""
    if isinstance(finding.report, OomKill):
        return finding
    return replace(finding, report=replace(finding.report, repeats=finding.repeats))
