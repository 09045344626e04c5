"""A kernel-log watcher with a clock in the test's hands, and everything it recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headway.events import Event, Health
from headway.exporter.kernel.log import KernelLogWatcher
from headway.gpu_faults.policy import DEFAULT_POLICY, Policy
from headway.kernel_log.oom import OomKill

SECOND = 10**9
BOOT = 1_788_000_000 * SECOND
"""Wall-clock time at which the monotonic clock read 0."""
BOOT_ID = "11111111-2222-3333-4444-555555555555"


@dataclass(slots=True, kw_only=True)
class Watch:
    """Its `now` is monotonic ns; a restart keeps what was recorded and the state folder."""

    folder: Path
    choice: str
    now: int = 1_000 * SECOND
    boot_id: str = BOOT_ID
    boot: int = BOOT
    policy: Policy = DEFAULT_POLICY
    told: list[tuple[Event, int]] = field(default_factory=list)
    earlier: list[tuple[Event, int]] = field(default_factory=list)
    killed: list[tuple[OomKill, int]] = field(default_factory=list)
    watcher: KernelLogWatcher | None = None

    def node_event(self, event: Event, *, monotonic: int | None = None) -> None:
        """Keep an event; the sink of the watcher."""
        self.told.append((event, self.now if monotonic is None else monotonic))

    def start(self) -> None:
        """Begin, or begin again after the reader was killed."""
        self.watcher = KernelLogWatcher(
            self,
            earlier=lambda event, wall: self.earlier.append((event, wall)),
            killed=lambda kill, at: self.killed.append((kill, at)),
            choice=self.choice,
            policy=self.policy,
            state=self.folder,
            boot_id=self.boot_id,
            monotonic=lambda: self.now,
            wall=lambda: self.boot + self.now,
        )

    def poll(self, seconds: float = 1, times: int = 1) -> None:
        """Let time pass and look, so many times."""
        if self.watcher is None:
            self.start()
        for _ in range(times):
            assert self.watcher is not None
            self.now += round(seconds * SECOND)
            self.watcher.poll()

    def stop(self) -> None:
        """End it as the agent does when it is told to."""
        assert self.watcher is not None
        self.watcher.close()
        self.watcher = None

    @property
    def faults(self) -> list[Event]:
        """What was recorded beside the state of the reader itself."""
        return [event for event, _ in self.told if not isinstance(event, Health)]

    @property
    def health(self) -> list[tuple[str, str | None]]:
        """What the reader said of itself."""
        return [(event.state, event.detail) for event, _ in self.told if isinstance(event, Health)]


def counts(events: list[Event]) -> Mapping[str, int]:
    """Return how many lines the recorded faults of each device and code unite."""
    found: dict[str, int] = {}
    for event in events:
        key = f"{getattr(event, 'device', '')} {getattr(event, 'code', None)}"
        found[key] = found.get(key, 0) + (getattr(event, "repeats", None) or 1)
    return found
