"""What launchers print about ranks and restarts: one line in, one statement out, nothing else.

Wordings of torchrun from torch 1.9 to 2.13, of `ft_launcher` of NVRx 0.4.1, 0.6 and 0.7 (whose
profiling lines tell a restart phase by phase) and of Slurm's `srun`. Pure; linear in the length of
the line, of which only the first `LONGEST` characters are read.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime

from headway.launcher_log.statements import (
    Cancelled,
    Closing,
    Exhausted,
    FailureDetected,
    Nested,
    OomNoted,
    PhaseSaid,
    RankFailed,
    Restarting,
    Said,
    Stopping,
    TableExit,
    TableRank,
    TasksEnded,
    TimedOut,
)

LONGEST = 2000
"""Characters of a line that are read: no launcher's own line is longer."""
_MOST_TASKS = 100_000
_NS = 1_000_000_000


_PROFILED = {
    "worker_terminated": ("stop_workers", "ended"),
    "rendezvous_started": ("rendezvous", "began"),
    "rendezvous_completed": ("rendezvous", "ended"),
    "worker_start_started": ("spawn", "began"),
    "worker_start_completed": ("spawn", "ended"),
    "health_check_completed": ("health_check", "ended"),
}
SIGNALS = {
    "Hangup": -1,
    "Interrupt": -2,
    "Quit": -3,
    "Illegal instruction": -4,
    "Aborted": -6,
    "Bus error": -7,
    "Floating point exception": -8,
    "Killed": -9,
    "Out Of Memory": -9,
    "Segmentation fault": -11,
    "Terminated": -15,
}
"""What `srun` and shells print for a process that a signal ended."""
_CANCELLED = {
    "TIME LIMIT": "time_limit",
    "PREEMPTION": "preemption",
    "NODE FAILURE": "node_failure",
}
_NUMBERED = {"1": "SIGHUP", "2": "SIGINT", "3": "SIGQUIT", "9": "SIGKILL", "15": "SIGTERM"}
"""Signals that launchers' handlers print as a number."""
_TASKS = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?")
_RANK_MONITOR = re.compile(r"RankMonServer\d+@[^:\]\s]{1,255}:(\d{1,9})\]")
_WORKLOAD = re.compile(r"\[workload:(?:(\d{1,9})|\?)\((?:(\d{1,9})|\?)\)")


def parse(line: str) -> Said | None:
    """Return what a line says about ranks and restarts; `None` where it is none of a launcher's."""
    line = line[:LONGEST]
    for mark, pattern, read in _GRAMMAR:
        if mark in line:
            found = pattern.search(line)
            said = None if found is None else read(found, line)
            if said is not None:
                return said
    return None


def _rank_failed(found: re.Match[str], line: str) -> Said:
    return RankFailed(exit_code=int(found[1]), local_rank=int(found[2]), process_id=int(found[3]))


def _tasks_ended(found: re.Match[str], line: str) -> Said | None:
    code = int(found[4]) if found[4] else SIGNALS.get(found[3].strip())
    tasks = _tasks(found[2])
    if code is None or not tasks:
        return None
    return TasksEnded(
        node=found[1], tasks=tasks, exit_code=code, out_of_memory=found[3] == "Out Of Memory"
    )


def _tasks(text: str) -> tuple[int, ...]:
    """Return the numbers of a list like `0-3,7`; none where it is too long to be true."""
    found: list[int] = []
    for part in text.split(","):
        span = _TASKS.fullmatch(part)
        if span is None:
            return ()
        begin, end = int(span[1]), int(span[2] or span[1])
        if end - begin + len(found) >= _MOST_TASKS:
            return ()
        found += range(begin, end + 1)
    return tuple(found)


def _signal(text: str) -> str:
    """Return a signal's name however a launcher prints it: `SIGTERM`, `Signals.SIGTERM`, `15`."""
    name = text.removeprefix("Signals.")
    return _NUMBERED.get(name, name)


def _profiled(found: re.Match[str], line: str) -> Said | None:
    cycle, wall = int(found[1]), _wall(found[3])
    if found[2] == "failure_detected":
        return FailureDetected(cycle=cycle, wall=wall)
    known = _PROFILED.get(found[2])
    if known is None:
        return None
    return PhaseSaid(phase=known[0], state=known[1], wall=wall, cycle=cycle)


def _wall(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * _NS + moment.microsecond * 1000


def _timed_out(kind: str, found: re.Match[str], line: str, section: str | None = None) -> Said:
    groups = found.groupdict()
    waited = round(float(groups["waited"]) * _NS)
    timeout = groups.get("timeout")
    watched = _RANK_MONITOR.search(line) or _WORKLOAD.search(line)
    ranks: list[int | None] = [None, None]
    if watched is not None:
        ranks = [None if number is None else int(number) for number in (*watched.groups(), None)]
    return TimedOut(
        kind=kind,
        rank=ranks[0],
        local_rank=ranks[1],
        waited=waited,
        timeout=waited if timeout is None else round(float(timeout) * _NS),
        section=section,
        message=found[0],
    )


def _section(found: re.Match[str], line: str) -> Said:
    return _timed_out("section_timeout", found, line, found["section"])


def _nested(found: re.Match[str], line: str) -> Said:
    return Nested(layer=found[1], state=found[2].lower(), stage=found[3] and found[3].lower())


def _phase(phase: str, state: str) -> Callable[[re.Match[str], str], Said]:
    return lambda found, line: PhaseSaid(phase=phase, state=state)


_SECONDS = r"(\d{1,9}(?:\.\d{1,9})?)"
_GRAMMAR: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str], str], Said | None]], ...] = (
    (
        "failed (exitcode:",
        re.compile(r"failed \(exitcode: (-?\d{1,9})\) local_rank: (\d{1,9}) \(pid: (\d{1,9})\)"),
        _rank_failed,
    ),
    (
        "(local_rank:",
        re.compile(r"^\s{0,20}rank\s{0,9}: (\d{1,9}) \(local_rank: (\d{1,9})\)\s*$"),
        lambda found, line: TableRank(rank=int(found[1]), local_rank=int(found[2])),
    ),
    (
        "exitcode",
        re.compile(r"^\s{0,20}exitcode\s{0,9}: (-?\d{1,9}) \(pid: (\d{1,9})\)"),
        lambda found, line: TableExit(exit_code=int(found[1]), process_id=int(found[2])),
    ),
    (
        "closing signal",
        re.compile(r"Sending process (\d{1,9}) closing signal ([\w.]{1,40})"),
        lambda found, line: Closing(process_id=int(found[1]), signal=_signal(found[2])),
    ),
    (
        "Closing process",
        re.compile(r"Closing process (\d{1,9}) via signal ([\w.]{1,40})"),
        lambda found, line: Closing(process_id=int(found[1]), signal=_signal(found[2])),
    ),
    (
        "Unable to shutdown process",
        re.compile(
            r"Unable to shutdown process (\d{1,9}) via [\w.]{1,40}, "
            r"forcefully exitt?ing via ([\w.]{1,40})"
        ),
        lambda found, line: Closing(process_id=int(found[1]), signal=_signal(found[2])),
    ),
    (
        "death signal",
        re.compile(r"Received ([\w.]{1,40}) death signal, shutting down workers"),
        lambda found, line: Stopping(signal=_signal(found[1])),
    ),
    (
        "attempts left",
        re.compile(r"Worker group (\w{1,20})\. (\d{1,9})/(\d{1,9}) attempts left"),
        # The count is printed before it is reduced.
        lambda found, line: Restarting(
            state=found[1], remaining=max(int(found[2]) - 1, 0), limit=int(found[3])
        ),
    ),
    (
        "restart attempts left",
        re.compile(r"(\d{1,9})/(\d{1,9}) restart attempts left; restarting worker group"),
        lambda found, line: Restarting(
            state=None, remaining=max(int(found[1]) - 1, 0), limit=int(found[2])
        ),
    ),
    (
        "restart attempts left",
        re.compile(r"0/(\d{1,9}) restart attempts left\. Exiting"),
        lambda found, line: Exhausted(limit=int(found[1])),
    ),
    (
        "No more restarts",
        re.compile(r"No more restarts will be attempted"),
        lambda found, line: Exhausted(limit=None),
    ),
    (
        "will restart worker group",
        re.compile(r"Detected \d{1,9} new nodes from group_rank=\d{1,9}; will restart"),
        lambda found, line: Restarting(state=None, remaining=None, limit=None),
    ),
    ("Rendezvous'ing", re.compile(r"Rendezvous'ing worker group"), _phase("rendezvous", "began")),
    (
        "Rendezvous complete",
        re.compile(r"Rendezvous complete for workers"),
        _phase("rendezvous", "ended"),
    ),
    ("Starting worker group", re.compile(r"Starting worker group"), _phase("spawn", "began")),
    (
        "Stopping worker",
        re.compile(r"Stopping worker(?: group|s\.\.\. Timeout)"),
        _phase("stop_workers", "began"),
    ),
    (
        "- Cycle:",
        re.compile(
            r"- Cycle: (\d{1,9}) Event: (\w{1,60}) Node: \S{1,300} Rank: \S{1,20} "
            r"Time: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) UTC"
        ),
        _profiled,
    ),
    (
        "[NestedRestarter]",
        re.compile(
            r"\[NestedRestarter\] name=\[(\w{1,40})\] state=([\w.]{1,40})(?: stage=(\w{1,40}))?"
        ),
        _nested,
    ),
    (
        "Did not get",
        re.compile(
            r"Did not get (?:initial|subsequent) heartbeat\. "
            rf"Waited (?P<waited>{_SECONDS}) seconds\."
        ),
        lambda found, line: _timed_out("heartbeat_timeout", found, line),
    ),
    (
        "has been open for",
        re.compile(
            rf"Section '(?P<section>[^']{{1,200}})' has been open for (?P<waited>{_SECONDS}) "
            rf"seconds\. Timeout is (?P<timeout>{_SECONDS}) seconds\."
        ),
        _section,
    ),
    (
        "Was out of section",
        re.compile(
            rf"Was out of section for (?P<waited>{_SECONDS}) seconds\."
            rf"(?: Timeout is (?P<timeout>{_SECONDS}) seconds\.)?"
        ),
        lambda found, line: _timed_out("section_timeout", found, line),
    ),
    (
        "srun: error:",
        re.compile(
            r"srun: error: ([\w.-]{1,255}): tasks? ([\d,-]{1,1000}): "
            r"(Exited with exit code (\d{1,9})|Out Of Memory|[A-Z][a-z ]{1,40})"
        ),
        _tasks_ended,
    ),
    (
        "CANCELLED AT",
        re.compile(r"CANCELLED AT \S{1,40} DUE TO (TIME LIMIT|PREEMPTION|NODE FAILURE)"),
        lambda found, line: Cancelled(reason=_CANCELLED[found[1]]),
    ),
    (
        "oom_kill event",
        re.compile(r"Detected (\d{1,9}) oom_kill events? in StepId="),
        lambda found, line: OomNoted(kills=int(found[1])),
    ),
)
"""What must be in a line for a pattern to be tried on it, the pattern, and its reading."""

WORDS = tuple(sorted({mark for mark, _, _ in _GRAMMAR}))
"""Of each line that can be read at least one."""
MARKS = re.compile("|".join(map(re.escape, WORDS)).encode())
"""Finds a line worth decoding in what a command writes."""
