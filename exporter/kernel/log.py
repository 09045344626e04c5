"""Watches the kernel's log for faults of GPUs and kills, and remembers how far it read.

The log is the kernel's buffer, the journal or a file; where none can be read it says so once. What
was read and not yet told is kept with the position, so that a restart neither loses a fault nor
tells it twice; only a kill between the two writes can tell one again.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headway.events import Dropped, Event, Health, Note
from headway.exporter.kernel.choices import choices, local_zone, open_source
from headway.exporter.kernel.line_times import KernelTime
from headway.exporter.kernel.sources import KMSG, Source, Taken
from headway.exporter.node.sink import NodeSink
from headway.exporter.spooling.positions import write_atomically
from headway.gpu_faults.policy import Policy, classified
from headway.kernel_log.live_bursts import LiveBursts, Told
from headway.kernel_log.log import KernelLog
from headway.kernel_log.oom import OomKill
from headway.kernel_log.stamps import Clock

_log = logging.getLogger(__name__)

CHECK = "kernel_log"
OFF = "off"
"""The setting with which no log is read."""
_STATE = "kernel_log.json"
_KEEP_EVERY = 10_000_000_000
"""Longest time in ns for which a new position alone waits to be kept."""
_TRY_AGAIN = 60_000_000_000
"""Time in ns until logs that cannot be read are tried again."""


class KernelLogWatcher:
    """Follows the kernel's log of this node; one of the agent's watchers."""

    def __init__(
        self,
        sink: NodeSink,
        *,
        earlier: Callable[[Event, int], None],
        killed: Callable[[OomKill, int], None],
        choice: str,
        policy: Policy,
        state: Path,
        boot_id: str | None,
        monotonic: Callable[[], int] = time.monotonic_ns,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            sink: takes the faults of this boot.
            earlier: takes a fault of an earlier boot and its UTC ns.
            killed: takes a kill of this boot for lack of memory and its monotonic ns.
            choice: `auto`, `kmsg`, `journal` or the path of a file.
            policy: judges the faults.
            state: folder for what is remembered over a restart.
            boot_id: identity of this boot.
            monotonic: gives the clock of the node's events.
            wall: gives the wall clock.
        """
        self._sink = sink
        self._earlier = earlier
        self._killed = killed
        self._choice = choice
        self._policy = policy
        self._path = state / _STATE
        self._boot_id = boot_id
        self._monotonic = monotonic
        self._wall = wall
        self._source: Source | None = None
        self._choices: list[str] = []
        self._refusals: list[str] = []
        self._clock = Clock()
        self._log = KernelLog(self._clock)
        self._time = KernelTime(boot_id)
        self._bursts = LiveBursts()
        self._since: int | None = None
        self._next_try = 0
        self._kept_at = 0
        self._said: str | None = None
        self._kept: Mapping[str, Any] = {}
        self._writable = True

    def poll(self) -> None:
        """Read a bounded amount, tell what is due, and remember how far it went."""
        now = self._monotonic()
        if self._source is None and now >= self._next_try:
            self._choices = choices(self._choice)
            self._open(now)
        if self._source is not None:
            try:
                taken = self._source.read(now)
            except OSError as error:
                self._lost(error, now)
            else:
                self._take(self._source, taken, now)
        told = self._bursts.due(now)
        self._tell(told)
        self._keep(now, at_once=bool(told.faults or told.late))

    def close(self) -> None:
        """Tell what waits, and let go of the log."""
        now = self._monotonic()
        self._tell(self._bursts.due(now, all_of_them=True))
        self._keep(now, at_once=True)
        if self._source is not None:
            self._source.close()
            self._source = None

    def _open(self, now: int) -> None:
        """Open the next log that may be readable."""
        kept = self._remembered()
        while self._source is None and self._choices:
            name = self._choices.pop(0)
            try:
                self._source = open_source(name, self._position(name, kept))
            except OSError as error:
                self._refusals.append(f"{name}: {error.strerror or error}")
        if self._source is None:
            self._give_up(now)
            return
        zone = None if self._source.live else local_zone()
        self._clock = Clock() if zone is None else Clock(zone=zone)
        self._log = KernelLog(self._clock)
        self._since = None

    def _position(self, name: str, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        if kept.get("source") != name:
            return {}
        same_boot = kept.get("boot_id") == self._boot_id
        position: Mapping[str, Any] = kept["position"]
        return {} if name == str(KMSG) and not same_boot else position

    def _lost(self, error: OSError, now: int) -> None:
        """Leave a log that can no longer be read, and try the next one."""
        assert self._source is not None  # noqa: S101  # it raised the error
        self._refusals.append(f"{self._source.name}: {error.strerror or error}")
        self._source.close()
        self._source = None
        self._open(now)

    def _give_up(self, now: int) -> None:
        """Say that no log can be read; all are tried again later, in silence."""
        self._next_try = now + _TRY_AGAIN
        refusals, self._refusals = self._refusals, []
        self._say("disabled", "; ".join(refusals), now)

    def _say(self, state: str, detail: str, now: int) -> None:
        """Record how it stands, once for as long as it stays so."""
        if self._said == detail:
            return
        self._said = detail
        if state == "healthy":
            _log.info("the kernel's log: %s", detail)
        else:
            _log.warning("GPU faults in the kernel's log are not seen: %s", detail)
        self._sink.node_event(Health(check=CHECK, state=state, detail=detail), monotonic=now)

    def _found(self, source: Source, taken: Taken, now: int) -> None:
        if source.proven:
            self._refusals = []
            self._say("healthy", f"reads {source.name}", now)
        elif not source.live and not taken.more:  # between two files there is more at once
            self._say("disabled", f"{source.name}: there is no such file yet", now)

    def _take(self, source: Source, taken: Taken, now: int) -> None:
        self._found(source, taken, now)
        wall = self._wall()
        self._clock.latest = wall
        for message in taken.messages:
            for finding in self._log.read([message]):
                at = self._time.monotonic(
                    message,
                    finding.time,
                    live=source.live,
                    since=self._since,
                    now=now,
                    clocks=wall - now,
                )
                if isinstance(finding.report, OomKill):
                    if at is not None:
                        self._killed(finding.report, at)
                    continue
                when = finding.time if at is None else at + wall - now
                self._bursts.add(replace(finding, monotonic=at, time=when), now)
        if taken.missed:
            reason = f"the kernel overwrote lines of its log before {source.name} was read"
            self._sink.node_event(Dropped(count=taken.missed, reason=reason), monotonic=now)
            _log.warning("%s: %d lines", reason, taken.missed)
        if taken.gap is not None:
            self._sink.node_event(Note(text=taken.gap), monotonic=now)
            _log.warning("%s; faults may be missing", taken.gap)
        self._since = None if taken.more else now

    def _tell(self, told: Told) -> None:
        for finding in told.faults:
            assert not isinstance(finding.report, OomKill)  # noqa: S101  # none was added
            event = classified(finding.report, self._policy)
            if finding.monotonic is not None:
                self._sink.node_event(event, monotonic=finding.monotonic)
            elif finding.time is not None:
                self._earlier(event, finding.time)
            else:
                _log.warning("a fault of unknown time is left out: %s", finding.line)
        for finding, late in told.late:
            text = f"{late} further lines belong to: {finding.line}"
            self._sink.node_event(Note(text=text))

    def _remembered(self) -> Mapping[str, Any]:
        """Return what the last reader kept, and take over the bursts that it had not told."""
        if self._kept:
            return self._kept
        try:
            kept = json.loads(self._path.read_bytes())
            self._bursts.restore(
                kept["bursts"], self._monotonic(), same_boot=kept["boot_id"] == self._boot_id
            )
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            _log.warning("cannot read %s (%r); the log is read from its start", self._path, error)
            return {}
        self._kept = kept
        return self._kept

    def _keep(self, now: int, *, at_once: bool) -> None:
        if self._source is None:
            return
        kept = {
            "source": self._source.name,
            "boot_id": self._boot_id,
            "position": self._source.position(),
            "bursts": self._bursts.state(),
        }
        if kept == self._kept:
            return
        changed = kept["bursts"] != self._kept.get("bursts", [])
        if not (at_once or changed or now - self._kept_at >= _KEEP_EVERY):
            return
        self._kept_at = now
        try:
            write_atomically(self._path, kept)
        except OSError as error:
            if self._writable:
                _log.error("cannot write %s: %s; a restart tells twice", self._path, error)
            self._writable = False
        else:
            self._writable = True
            self._kept = kept
