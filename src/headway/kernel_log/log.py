"""A kernel log from its lines to what they report: faults of GPUs, processes killed for memory."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

from headway.events import Described, GpuFault, GpuSxid, GpuXid
from headway.kernel_log.gpu_lines import DRIVER_MARKS, DriverLines
from headway.kernel_log.oom import OomKill, oom_kill
from headway.kernel_log.records import Message, Records
from headway.kernel_log.stamps import Clock

GpuReport = GpuXid | GpuSxid | GpuFault
Report = GpuReport | OomKill

_LONGEST_KEPT = 1000
"""Characters of a raw line that are kept with a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one or more united lines report."""

    report: Annotated[Report, Described("What happened.")]
    time: Annotated[int | None, Described("When the first line was written.", "ns")]
    monotonic: Annotated[int | None, Described("The same since the boot.", "ns")] = None
    line: Annotated[str, Described("The first line, raw.")]
    repeats: Annotated[int, Described("Lines that say it.", "lines")] = 1


class KernelLog:
    """Reads one log in the order of its lines, with bounded memory and in linear time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._records = Records()
        self._driver = DriverLines()

    def feed(self, line: str) -> list[Finding]:
        """Return what a line completes; most lines complete nothing."""
        return self._findings(self._records.feed(line))

    def finish(self) -> list[Finding]:
        """Return what the end of the log completes."""
        return self._findings(self._records.finish())

    def read(self, messages: Iterable[Message]) -> list[Finding]:
        """Return what messages report that something else has unwrapped."""
        return self._findings(messages)

    def _findings(self, messages: Iterable[Message]) -> list[Finding]:
        found = []
        for message in messages:
            report = self._report(message.text)
            # Every line's time is looked at: the next one's year depends on it.
            time = self._clock.moment(message.stamp)
            if report is None:
                continue
            line = message.raw[:_LONGEST_KEPT]
            found.append(
                Finding(
                    report=report if isinstance(report, OomKill) else replace(report, line=line),
                    time=time,
                    monotonic=message.stamp.monotonic,
                    line=line,
                    repeats=message.repeats,
                )
            )
        return found

    def _report(self, text: str) -> Report | None:
        if text.startswith(DRIVER_MARKS):
            return self._driver.read(text)
        return oom_kill(text)
