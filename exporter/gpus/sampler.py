"""The watcher of the node's GPUs: starts the helper, reads its lines, kills it when one stays out.

It never waits. A helper that does not die, because the driver holds it in the kernel, is left to
the operating system and looked at again later. The GPU about which a question hung is left out of
the next helpers, so that the others stay watched, and is tried again after longer and longer times.
"""

import json
import logging
import sys
import time
from collections.abc import Callable, Collection, Sequence

from headway.events import Event, GpuXid
from headway.exporter.gpus.echoes import KernelXids, WaitingXids
from headway.exporter.gpus.findings import Findings
from headway.exporter.gpus.helper_process import HelperProcess
from headway.exporter.node.sink import NodeSink
from headway.gpu_faults.policy import DEFAULT_POLICY, Policy

_log = logging.getLogger(__name__)

FIRST_DELAY, LONGEST_DELAY = 2.0, 300.0
"""Seconds until a helper that ended is started again; doubled each time that it ends at once."""
DISABLED_DELAY = 300.0
"""Seconds until the driver is looked for again where there is none."""
RETRY_DELAY = 600.0
"""Seconds until a GPU about which a question hung is asked again; doubled each time."""
LONGEST_RETRY = 6 * 3600.0
_STEADY = 60.0
"""A helper that worked for so many seconds did not end at once."""
_MOST_UNDEAD = 4
"""With so many killed helpers that still exist, none is started."""
_STARTING = 60.0
"""Seconds after which a helper that says nothing at all could not start."""
_CLOSING = 0.5
"""Seconds for which the end waits for the killed helper."""


class GpuSampler:
    """Watches the GPUs through NVML; `command` starts the helper."""

    def __init__(
        self,
        sink: NodeSink,
        *,
        interval: float,
        deadline: float,
        kernel: KernelXids | None = None,
        policy: Policy = DEFAULT_POLICY,
        command: Sequence[str] = (sys.executable, "-m", "headway.exporter.gpus.helper"),
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Prepare; `interval` and `deadline` are seconds, `monotonic` gives ns."""
        self._sink = sink
        self._interval = interval
        self._deadline = deadline
        self._command = list(command)
        self._monotonic = monotonic
        self._findings = Findings(policy)
        self._xids = WaitingXids(kernel)
        self._helper: HelperProcess | None = None
        self._undead: list[HelperProcess] = []
        self._started = 0
        self._next_start = 0
        self._delay = FIRST_DELAY / 2
        self._expected = 0
        """When the next line is due at the latest, in monotonic ns."""
        self._asking: tuple[str | None, int | None] = (None, None)
        """UUID and number of the GPU that the helper asks about."""
        self._speaks = False
        """Whether the helper has said anything."""
        self._avoided: dict[int, tuple[int, float]] = {}
        """Numbers of GPUs that are left out, until when, and for how long in seconds."""

    def answering(self) -> Collection[str]:
        """UUIDs of the GPUs whose last reading came."""
        return self._findings.answering

    def poll(self) -> None:
        """Take what the helper said, and see to it that one works."""
        now = self._monotonic()
        self._undead = [helper for helper in self._undead if helper.status is None]
        if self._helper is None:
            if now >= self._next_start and len(self._undead) < _MOST_UNDEAD:
                self._start(now)
        elif not self._read(self._helper, now):
            if self._helper.status is not None:
                self._ended(self._helper, now)
            elif now > self._expected:
                self._hung(now)
            elif any(self._started < until <= now for until, _ in self._avoided.values()):
                self._kill()  # the next one asks again about what this one leaves out
                self._next_start = now
        self._record_xids(now)

    def close(self) -> None:
        """Kill the helper."""
        now = self._monotonic()
        if self._helper is not None:
            self._read(self._helper, now)
            self._kill()
        self._record_xids(now, all_of_them=True)
        for helper in self._undead:
            helper.wait(_CLOSING / len(self._undead))

    def _start(self, now: int) -> None:
        command = [*self._command, "--interval", str(self._interval)]
        for index, (until, _) in self._avoided.items():
            if until > now:
                command += ["--skip", str(index)]
        self._started = now
        self._asking, self._speaks = (None, None), False
        self._expected = now + _ns(_STARTING)
        try:
            self._helper = HelperProcess(command)
        except OSError as error:
            _log.warning("cannot start the GPU helper: %s", error)
            self._put_off(now)

    def _read(self, helper: HelperProcess, now: int) -> bool:
        """Take what the helper wrote; return whether it wrote anything."""
        lines = helper.lines()
        for line in lines or ():
            self._take(line, now)
        return lines is not None

    def _take(self, content: bytes, now: int) -> None:
        try:
            line = json.loads(content)
            # From now and not from then: a full pipe makes the helper wait for this look.
            self._expected = now + _ns(line["patience"] + self._deadline)
            self._speaks = True
            at, kind = line["at"], line["kind"]
            asking = kind == "asking"
            self._asking = (line.get("device"), line.get("index")) if asking else (None, None)
            if kind == "disabled":
                self._next_start = at + _ns(DISABLED_DELAY)
            elif kind == "state":
                self._avoided.pop(self._findings.gpus[line["device"]].index, None)
            events = self._findings.take(line)
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("the GPU helper wrote %r: %r", content[:200], error)
            return
        self._record(events, at)

    def _record(self, events: Sequence[Event], at: int) -> None:
        for event in events:
            if isinstance(event, GpuXid):
                known = self._findings.gpus.get(event.device)
                self._xids.add(event, known.pci_address if known else event.device, at)
            else:
                self._sink.node_event(event, monotonic=at)

    def _record_xids(self, now: int, *, all_of_them: bool = False) -> None:
        for at, xid in self._xids.due(now, all_of_them=all_of_them):
            self._sink.node_event(xid, monotonic=at)

    def _hung(self, now: int) -> None:
        self._kill()
        self._put_off(now)
        if not self._speaks:
            _log.warning("the GPU helper did not start within %.0f s", _STARTING)
            return
        device, index = self._asking
        if index is not None:
            _, delay = self._avoided.get(index, (0, RETRY_DELAY / 2))
            delay = min(2 * delay, LONGEST_RETRY)
            self._avoided[index] = (now + _ns(delay), delay)
        self._record(self._findings.hung(device, index, self._deadline, now), now)

    def _ended(self, helper: HelperProcess, now: int) -> None:
        if helper.status:
            _log.warning("the GPU helper ended with status %d", helper.status)
        self._kill()
        self._put_off(now)

    def _put_off(self, now: int) -> None:
        """Set when the next helper starts: later each time that one ended at once."""
        steady = now - self._started > _ns(_STEADY)
        self._delay = FIRST_DELAY if steady else min(2 * self._delay, LONGEST_DELAY)
        self._next_start = max(self._next_start, now + _ns(self._delay))

    def _kill(self) -> None:
        if self._helper is not None:
            self._helper.kill()
            self._undead.append(self._helper)
            self._helper = None


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
