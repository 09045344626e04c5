"""When a simulated run needs a person, as the simulator itself knows it.

Nothing here asks what Headway saw: a need begins when what was done to the run can no longer mend
itself, and ends when the simulated person has mended it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headway.simulate.plan import MINUTE

NEEDS: Mapping[str, str] = {
    "loop": "page",
    "hang": "page",
    "down": "page",
    "last_restart": "page",
    "forgotten": "page",
    "starved": "page",
    "saves_fail": "ticket",
    "writes_slow": "ticket",
    "straggler": "ticket",
    "broken_gpu": "ticket",
    "unreadable": "ticket",
    "near_timeout": "ticket",
    "few_restarts": "ticket",
}
"""Every need, and whether somebody is woken for it or looks at it in working hours.

loop: what broke the run stays and broke it again. hang: nothing but a person will end it. down: no
layer will start the run again. last_restart: the outermost layer has no restart left. forgotten: a
load did not find the newest checkpoint. starved: more than half of the time goes to waiting for
data. saves_fail, writes_slow: background writes fail or outlast the interval. straggler: one rank
holds all up. broken_gpu: a GPU asks for a reset or worse. unreadable: a checkpoint is torn.
near_timeout: a phase took most of the timeout that would have killed it. few_restarts: the
outermost layer has at most one left.
"""

_PAUSE = 10 * MINUTE


@dataclass(slots=True, kw_only=True)
class Need:
    """One need; times of the run in ns."""

    kind: str
    begin: int
    end: int


class NeedLog:
    """Needs in the order in which they began."""

    def __init__(self) -> None:
        self.found: list[Need] = []

    def need(self, kind: str, begin: int, end: int) -> None:
        """Note a need between two times; one that goes on, be it after a save, is one."""
        last = next((one for one in reversed(self.found) if one.kind == kind), None)
        if last is not None and begin <= last.end + _PAUSE:
            last.end = max(last.end, end)
        else:
            self.found.append(Need(kind=kind, begin=begin, end=end))

    def end(self, kind: str, time: int) -> None:
        """Let a need end that would have gone on beyond a time."""
        for one in self.found:
            if one.kind == kind and one.begin <= time < one.end:
                one.end = time

    def close(self, time: int) -> tuple[Need, ...]:
        """Return the needs of a run that ends at a time."""
        for one in self.found:
            one.end = min(one.end, time)
        return tuple(one for one in self.found if one.begin < one.end)
