"""Lines of the kernel's log that stand in a training's: its grammar is `headway.kernel_log`.

A GPU's fault counts where it asks for something of the machine; what a program did itself, and what
is only to be watched, is no fault of the run.
"""

import re

from headway.events import GpuFault, GpuSxid, GpuXid
from headway.gpu_faults.policy import classify
from headway.importing.rules import Format, Rule
from headway.importing.sayings import Broke, Remark, Saying
from headway.kernel_log.gpu_lines import DRIVER_MARKS
from headway.kernel_log.log import KernelLog
from headway.kernel_log.oom import OomKill
from headway.kernel_log.stamps import Clock

_NODE = re.compile(r"(?<!\S)([A-Za-z][\w.-]{0,254}) kernel:")
_OF_MACHINE = ("reset", "reboot", "replace")
_OOM_MARKS = ("ut of memory: Kill", "oom-kill:constraint")


def _report(line: str) -> Saying | None:
    findings = KernelLog(Clock()).feed(line)
    if not findings:
        return None
    report, node = findings[0].report, _NODE.search(line)
    return _said(report, line.strip(), None if node is None else node[1])


def _said(report: GpuXid | GpuSxid | GpuFault | OomKill, line: str, node: str | None) -> Saying:
    if isinstance(report, OomKill):
        return Broke(kind="host_oom", message=line, node=node)
    if classify(report).classification in _OF_MACHINE:
        return Broke(kind="health_check", message=line, node=node)
    return Remark(kind="gpu", text=line)


FORMAT = Format(
    name="kernel-log",
    is_training=False,
    rules=tuple(Rule(mark, _report) for mark in (*DRIVER_MARKS, *_OOM_MARKS)),
)
