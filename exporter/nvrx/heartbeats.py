"""Heartbeats and sections for NVRx's rank monitor, mirrored from what the recorder is told.

Under `ft_launcher` each completed step is a heartbeat, and each phase that the launcher's
configuration gives a timeout is a section of that name; `step` is one, too. A section that it
does not name is never opened: from that the monitor of 0.4.1 dies. Whatever goes wrong here is
reported once and given up; the training goes on, unwatched.
"""

import atexit
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from headway.exporter.recording.recorder import Recorder

_SOCKET = "FT_RANK_MONITOR_IPC_SOCKET"
_LEAST_INTERVAL = 100_000_000
"""Steps shorter than this share a heartbeat, in ns: each is answered by another process."""
_SECOND = 10**9


class Heartbeats:
    """The rank monitor's view of this process; does nothing where no monitor listens."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        environment: Mapping[str, str] = os.environ,
        make_client: Callable[[], Any] | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Prepare; `make_client` makes a `RankMonitorClient`, by default NVRx's own.

        `clock` is monotonic, in ns.
        """
        self._recorder = recorder
        self._environment = environment
        self._make_client = make_client or _client
        self._clock = clock
        self._process = os.getpid()
        self._observing = False
        self._connected = False
        self._open: list[str] = []
        self._sections: frozenset[str] = frozenset()
        self._beats = False
        self._last_beat = 0
        self.client: Any = None
        """NVRx's client once there was a monitor, for what is not mirrored here."""

    def start(self) -> None:
        """Connect to the monitor, and open sections for the phases that are open.

        Call it again after `stop`, in each attempt within the process.
        """
        if self._connected or not self._environment.get(_SOCKET):
            return
        try:
            if self.client is None:
                self.client = self._make_client()
            self.client.init_workload_monitoring()
            self._connected = True
            self._sections = frozenset(self.client.section_timeouts.section or ())
            beats = self.client.hb_timeouts
            self._beats = beats.initial is not None or beats.subsequent is not None
            self._last_beat = 0
        except Exception as error:
            self._give_up("the rank monitor cannot be reached", error)
            return
        if not self._observing:
            self._observing = True
            self._recorder.observe(self)
            atexit.register(self.stop)
        for phase in self._recorder.open_phases:
            self.began(phase)

    def stop(self) -> None:
        """Leave the monitor, which then expects nothing any more; before exit or a restart."""
        if not self._connected or os.getpid() != self._process:
            return
        self._connected = False
        self._open.clear()
        try:
            self.client.shutdown_workload_monitoring()
        except Exception:  # the monitor left first
            self.client = None  # half shut, it would refuse to begin again

    def timeouts(self) -> dict[str, int]:
        """Return the timeouts that the monitor applies by name in ns, for `run.configured`."""
        if self.client is None or self.client.hb_timeouts is None:
            return {}
        beats, sections = self.client.hb_timeouts, self.client.section_timeouts
        found = {
            "launcher.initial_heartbeat_timeout": beats.initial,
            "launcher.heartbeat_timeout": beats.subsequent,
            "launcher.out_of_section_timeout": sections.out_of_section,
        }
        for name, timeout in (sections.section or {}).items():
            found[f"launcher.section_timeout.{name}"] = timeout
        return {name: round(x * _SECOND) for name, x in found.items() if x is not None}

    # For the recorder

    def began(self, phase: str) -> None:
        """Open the section of this name, if there is one."""
        if phase not in self._sections or not self._listens() or phase in self._open:
            return
        self._open.append(phase)
        self._say(lambda: self.client.start_section(phase))

    def ended(self, phase: str, completed: bool) -> None:
        """Close the section of this name; a completed step is a heartbeat."""
        if not self._listens():
            return
        if phase in self._open:
            self._open.remove(phase)
            self._say(lambda: self.client.end_section(phase))
        if self._beats and completed and phase == "step" and self._connected:
            now = self._clock()
            if now - self._last_beat >= _LEAST_INTERVAL or not self._last_beat:
                self._last_beat = now
                self._say(self.client.send_heartbeat)

    def _listens(self) -> bool:
        return self._connected and os.getpid() == self._process  # not in a forked worker

    def _say(self, message: Callable[[], None]) -> None:
        try:
            message()
        except Exception as error:
            self._give_up("the rank monitor stopped answering", error)

    def _give_up(self, what: str, error: Exception) -> None:
        self._recorder.misuse(
            "rank_monitor",
            f"{what}: {error!r}; it gets no heartbeats and sections of this process any more",
        )
        self.stop()
        self.client = None


def _client() -> Any:
    from nvidia_resiliency_ext.fault_tolerance import (  # type: ignore[import-untyped]
        RankMonitorClient,  # torch comes with it: only where a monitor listens
    )

    return RankMonitorClient()
