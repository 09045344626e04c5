"""Bursts of a log that is being written: each is told once, soon, and remembered for its window.

A fault is told when its burst is quiet, or after a few seconds if it is not. What comes later
within the burst's window is no new fault; it is counted and told as a sentence at the end. The
state can be kept over a restart of the reader.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from headway import wire
from headway.events import Described
from headway.kernel_log.bursts import Burst, burst_key, burst_window, counted, united, within
from headway.kernel_log.log import Finding
from headway.kernel_log.oom import OomKill

_SECOND = 10**9
QUIET = 2 * _SECOND
"""A burst without a new line for so long is told."""
LONGEST_WAIT = 5 * _SECOND
"""A burst is told after so long at the latest."""
_MOST = 4096
"""Bursts remembered at the same time; beyond, the oldest is told and forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What has to be recorded: new faults, and how many lines came after one was told."""

    faults: Annotated[list[Finding], Described("Faults to tell.")] = field(default_factory=list)
    late: Annotated[
        list[tuple[Finding, int]], Described("Faults told before, with their further lines.")
    ] = field(default_factory=list)


@dataclass(slots=True)
class _Live:
    burst: Burst
    seen: int
    changed: int
    told: bool = False
    late: int = 0


class LiveBursts:
    """Unites findings as they come; `now` is the reader's own monotonic clock in ns."""

    def __init__(self) -> None:
        self._live: dict[Hashable, _Live] = {}
        self._leaving: list[_Live] = []
        """Those that something else has replaced before they were told."""

    def add(self, finding: Finding, now: int) -> None:
        """Take the next fault of a GPU."""
        key = burst_key(finding.report)
        # The monotonic clock first: nobody sets it between two lines.
        time = finding.monotonic if finding.monotonic is not None else finding.time
        live = self._live.get(key)
        if live is not None and within(live.burst, time):
            live.changed = now
            live.burst.last = time if time is not None else live.burst.last
            if live.told:
                live.late += finding.repeats
            else:
                live.burst.finding = united(live.burst.finding, finding)
            return
        if live is not None:
            self._leaving.append(self._live.pop(key))
        elif len(self._live) >= _MOST:
            self._leaving.append(self._live.pop(next(iter(self._live))))
        burst = Burst(key, finding, time, time, burst_window(finding.report))
        self._live[key] = _Live(burst, now, now)

    def due(self, now: int, *, all_of_them: bool = False) -> Told:
        """Return what has to be told by now, each once."""
        told = Told()
        leaving, self._leaving = self._leaving, []
        for live in leaving:
            _leave(live, told)
        for key, live in list(self._live.items()):
            quiet = now - live.changed
            if not live.told and (all_of_them or quiet >= QUIET or now - live.seen >= LONGEST_WAIT):
                told.faults.append(counted(live.burst.finding))
                live.told = True
            if live.told and quiet > live.burst.window:
                _leave(live, told)
                del self._live[key]
        return told

    def state(self) -> list[Mapping[str, Any]]:
        """Return what a restarted reader has to know, as JSON."""
        return [
            {
                "finding": _as_json(live.burst.finding),
                "begin": live.burst.begin,
                "last": live.burst.last,
                "told": live.told,
                "late": live.late,
            }
            for live in [*self._leaving, *self._live.values()]
        ]

    def restore(self, state: list[Mapping[str, Any]], now: int, *, same_boot: bool) -> None:
        """Take over what `state` returned; of an earlier boot only what was not told.

        A fault that comes back after a reboot is a new one.

        Raises:
            KeyError, TypeError, ValueError: something that `state` did not write.
        """
        for item in state:
            finding = _from_json(item["finding"])
            if not same_boot:
                if not item["told"]:
                    finding = replace(finding, monotonic=None)
                    burst = Burst(None, finding, None, None, 0)
                    self._leaving.append(_Live(burst, now, now))
                continue
            key = burst_key(finding.report)
            burst = Burst(key, finding, item["begin"], item["last"], burst_window(finding.report))
            self._live[key] = _Live(burst, now, now, bool(item["told"]), int(item["late"]))


def _leave(live: _Live, told: Told) -> None:
    if not live.told:
        told.faults.append(counted(live.burst.finding))
    if live.late:
        told.late.append((live.burst.finding, live.late))


def _as_json(finding: Finding) -> Mapping[str, Any]:
    assert not isinstance(finding.report, OomKill)  # noqa: S101  # `add` takes none
    return {
        "name": finding.report.name,
        "fields": wire.json_fields(finding.report),
        "time": finding.time,
        "monotonic": finding.monotonic,
        "line": finding.line,
        "repeats": finding.repeats,
    }


def _from_json(item: Mapping[str, Any]) -> Finding:
    report: Any = wire.from_fields(item["name"], item["fields"])
    return Finding(
        report=report,
        time=item["time"],
        monotonic=item["monotonic"],
        line=item["line"],
        repeats=item["repeats"],
    )
