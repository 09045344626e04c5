"""What the kernel's log says of processes that it killed for lack of memory. Pure.

Wordings of Linux 3.10 to 6.x (mm/oom_kill.c): the victim's line, which older kernels begin with
"Kill process ... or sacrifice child", the summary of the kill with its control groups, and the
reaper's line.
"""

import re
from dataclasses import dataclass

LONGEST = 2000
"""Characters of a line that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OomKill:
    """A process that was killed for lack of memory; the id is the kernel's own, not a container's.

    `limited` says whether a control group's limit was reached and not the node's memory, `cgroup`
    is the victim's memory control group; both are `None` where the line does not tell.
    """

    process_id: int
    name: str | None
    limited: bool | None = None
    cgroup: str | None = None


_VICTIM = re.compile(
    r"(Memory cgroup out of memory|Out of memory[^:]{0,60}): "
    r"Kill(?:ed)? process (\d{1,9}) \((.{1,64}?)\)(?:,| total-vm| score|$)"
)
_SUMMARY = re.compile(r"oom-kill:constraint=(CONSTRAINT_\w{1,30}),")
_TASK = re.compile(r",task=(.{1,64}?),pid=(\d{1,9})(?:,|\s|$)")
_CGROUP = re.compile(r",task_memcg=([^,\s]{1,1000})")
_REAPED = re.compile(r"oom_reaper: reaped process (\d{1,9}) \((.{1,64}?)\)")


def oom_kill(line: str) -> OomKill | None:
    """Return the kill that a line of the kernel's log tells of; `None` for any other line."""
    line = line[:LONGEST]
    if "emory" in line and (found := _VICTIM.search(line)):
        limited = found[1].startswith("Memory cgroup")
        return OomKill(process_id=int(found[2]), name=found[3], limited=limited)
    if "oom-kill:" in line and (found := _SUMMARY.search(line)) and (task := _TASK.search(line)):
        cgroup = _CGROUP.search(line)
        return OomKill(
            process_id=int(task[2]),
            name=task[1],
            limited=found[1] == "CONSTRAINT_MEMCG",
            cgroup=None if cgroup is None else cgroup[1],
        )
    if "oom_reaper" in line and (found := _REAPED.search(line)):
        return OomKill(process_id=int(found[1]), name=found[2])
    return None
