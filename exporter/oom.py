"""Evidence that a process was killed for lack of memory: control groups' counters, kernel's log.

A SIGKILL alone says nothing. The kernel's log names the victim; where it cannot be read, a control
group's counter of kills that rose just when the process died accuses it, once per kill, and nobody
where more processes died then than it counted.
"""

import signal
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.events import Fault
from headway.kernel_log.oom import OomKill

FAULT = Fault(
    kind="host_oom",
    message="the kernel killed it for lack of memory",
    signal=signal.SIGKILL,
)
"""What is recorded of a rank with such evidence."""

_ROOT = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
_BEFORE, _AFTER = 5_000_000_000, 60_000_000_000
"""How far, in ns, a counter may have risen before a death, and the kernel have logged after it."""


def kill_counter(process_id: int, proc: Path = _PROC, root: Path = _ROOT) -> Path | None:
    """Return the file that counts the kills in a process's memory control group.

    Version 1 and 2 of control groups, from the outside and from within a container, where the
    group that the process is in may be seen as the root. `None` where nothing counts.
    """
    try:
        lines = (proc / str(process_id) / "cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        parts = [part for part in group.split("/") if part not in ("", "..")]
        if "memory" in controllers.split(","):
            found = _innermost(root / "memory", parts, "memory.oom_control")
        elif number == "0":
            found = _innermost(root, parts, "memory.events")
        else:
            continue
        if found is not None:
            return found
    return None


def kills(counter: Path) -> int | None:
    """Return how many processes of a control group were killed for lack of memory so far."""
    try:
        lines = counter.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    for line in lines:
        name, _, value = line.partition(" ")
        if name == "oom_kill" and value.isdigit():
            return int(value)
    return None


@dataclass(frozen=True, slots=True)
class _Rise:
    """One more kill of a counter, seen at `until` and not yet at `since`."""

    since: int
    until: int

    def may_be(self, died: int) -> bool:
        """Return whether it may have counted a process that died then."""
        return self.since <= died <= self.until + _BEFORE


class OomEvidence:
    """What is known about kills for lack of memory; times are monotonic ns."""

    def __init__(self) -> None:
        self._counts: dict[Path, int] = {}
        self._looked: int | None = None
        self._rises: dict[Path, list[_Rise]] = defaultdict(list)
        self._deaths: dict[Path, dict[int, int]] = defaultdict(dict)
        self._named: dict[int, list[int]] = defaultdict(list)
        self._watched: set[int] = set()

    def watch(self, process_id: int, counter: Path | None) -> None:
        """Follow a process, and the counter of its control group, from now on."""
        self._watched.add(process_id)
        if counter is not None and counter not in self._counts:
            count = kills(counter)
            if count is not None:
                self._counts[counter] = count

    def look(self, now: int) -> None:
        """Read the counters."""
        since = now - _BEFORE if self._looked is None else self._looked
        for counter, before in self._counts.items():
            count = kills(counter)
            if count is not None and count > before:
                self._rises[counter] += [_Rise(since, now)] * (count - before)
            if count is not None:
                self._counts[counter] = count
        self._looked = now

    def died(self, process_id: int, counter: Path | None, died: int) -> None:
        """Take a death by SIGKILL, before any of those at that time is to be explained."""
        if counter is not None:
            self._deaths[counter][process_id] = died

    def logged(self, kill: OomKill, now: int) -> None:
        """Take a kill that the kernel logged."""
        self._named[kill.process_id].append(now)

    def explains(self, process_id: int, counter: Path | None, died: int) -> bool:
        """Return whether a process that died by SIGKILL was killed for lack of memory.

        A counter's rise explains one death only, first that of a process which the kernel named.
        Where it may have counted one of several, it explains none of them.
        """
        rises = [] if counter is None else self._rises[counter]
        near = [rise for rise in rises if rise.may_be(died)]
        named = self._is_named(process_id, died)
        # What else the kernel killed on this node need not be of this control group.
        others = sum(self._is_named(other, died) for other in self._watched - {process_id})
        if not named and len(near) < 1 + others + self._rivals(process_id, counter, near):
            return False
        if near:
            rises.remove(near[0])
        self._named.pop(process_id, None)
        if counter is not None:
            self._deaths[counter].pop(process_id, None)
        return True

    def _rivals(self, process_id: int, counter: Path | None, rises: Sequence[_Rise]) -> int:
        """Count the other deaths, named by nobody, that the rises of a counter may be about."""
        if counter is None:
            return 0
        return sum(
            any(rise.may_be(died) for rise in rises) and not self._is_named(other, died)
            for other, died in self._deaths[counter].items()
            if other != process_id
        )

    def _is_named(self, process_id: int, died: int) -> bool:
        times = self._named.get(process_id, ())
        return any(died - _BEFORE <= time <= died + _AFTER for time in times)


def _innermost(mount: Path, parts: list[str], name: str) -> Path | None:
    """Return the file of the innermost group that is there."""
    for length in range(len(parts), -1, -1):
        found = mount.joinpath(*parts[:length], name)
        if found.is_file() and kills(found) is not None:
            return found
    return None
