"""torchrun and torchelastic, NVRx's launcher and Slurm: their grammar is `headway.launcher_log`.

Beside it what a log alone needs: the count of restarts that a rendezvous prints, the folder of an
attempt's error files, the failed node, and the scripts that watch a job from outside.
"""

import re

from headway.importing.rules import Format, Rule
from headway.importing.sayings import (
    Began,
    Broke,
    Configured,
    JobState,
    LauncherSays,
    Remark,
    Requeued,
    Saying,
    Stops,
)
from headway.launcher_log import lines

_RESTARTS = re.compile(r"\brestart_count=(\d{1,9})\b")
_WORLD = re.compile(r"\bglobal_world_sizes=\[(\d{1,9})[,\]]")
_ERROR_FILE = re.compile(r"reply file to: \S{0,1000}/attempt_(\d{1,9})/(\d{1,9})/error\.json")
_NODE = re.compile(r"srun: error: Node failure on ([\w.,\[\]-]{1,255})")
_CANCELLED = re.compile(
    r"\*\*\* (?:STEP|JOB) (\S{1,40}) ON (\S{1,255}) CANCELLED AT (\S{1,40})"
    r"(?: DUE TO ([A-Z -]{1,60}?))?"
    r"(?:, | \*\*\*)"
)
_RUNNING = re.compile(
    r"PULSE: (\S{1,200}) is running for (\S{1,40}) since (\S{1,40}) \((\d{1,15}\S{0,40})"
)
_WAITING = re.compile(r"PULSE: (\S{1,200}) is waiting to be scheduled \((\S{1,80})")
_EXPECTED = re.compile(
    r"(\S{1,200}) is scheduled to start in .{1,80}\(at (\S{1,40})\) \((\S{1,80})"
)


def _said(line: str) -> Saying | None:
    said = lines.parse(line)
    return None if said is None else LauncherSays(said=said)


def _restarts(line: str) -> Saying | None:
    found = _RESTARTS.search(line)
    return None if found is None else Began(layer="launcher", restarts=int(found[1]))


def _world(line: str) -> Saying | None:
    found = _WORLD.search(line)
    return None if found is None else Configured(name="world_size", value=int(found[1]))


def _error_file(line: str) -> Saying | None:
    found = _ERROR_FILE.search(line)
    return None if found is None else Began(layer="launcher", restarts=int(found[1]))


def _node_failed(line: str) -> Saying | None:
    found = _NODE.search(line)
    if found is None:
        return None
    return Broke(kind="lost_node", message=found[0], node=found[1].rstrip("."))


def _cancelled(line: str) -> tuple[Saying, ...] | None:
    """Tell a cancel that names no cause of its own; the others are the launcher grammar's."""
    found = _CANCELLED.search(line)
    if found is None or lines.parse(line) is not None:
        return None
    cancelled = JobState(state="cancelled", job=found[1])
    requeued = found[4] == "JOB REQUEUE"
    return (cancelled, Requeued(job=found[1])) if requeued else (cancelled,)


def _running(line: str) -> Saying | None:
    found = _RUNNING.search(line)
    if found is None:
        return None
    return JobState(state="running", job=found[4], started=found[3])


def _waiting(line: str) -> Saying | None:
    found = _WAITING.search(line)
    return None if found is None else JobState(state="another waits", job=found[2])


def _alert(line: str) -> Saying | None:
    return JobState(state="not scheduled", alert=True)


def _expected(line: str) -> Saying | None:
    found = _EXPECTED.search(line)
    if found is None:
        return None
    return JobState(state="queued", job=found[3], expected=found[2])


def _requeued(line: str) -> Saying | None:
    return Requeued(job=line.rpartition(":")[2].strip()[:60] or None)


def _joined(line: str) -> Saying | None:
    return Remark(kind="launcher", text=line.strip()[:200])


def _sigterm(line: str) -> Saying | None:
    return Stops(reason="sigterm")


_OF_SLURM = ("srun: error:", "CANCELLED AT", "oom_kill event")
_OF_NVRX = (
    "- Cycle:",
    "[NestedRestarter]",
    "Did not get",
    "has been open for",
    "Was out of section",
)
"""Marks of the common grammar that tell whose line it is."""
TORCHRUN = Format(
    name="torchrun",
    is_training=False,
    rules=(
        *(Rule(mark, _said) for mark in lines.WORDS if mark not in (*_OF_SLURM, *_OF_NVRX)),
        Rule("restart_count=", _restarts),
        Rule("global_world_sizes=", _world),
        Rule("reply file to:", _error_file),
    ),
)
SLURM = Format(
    name="slurm",
    is_training=False,
    rules=(
        *(Rule(mark, _said) for mark in _OF_SLURM),
        Rule("Node failure on", _node_failed),
        Rule("CANCELLED AT", _cancelled),
        Rule("PULSE: ", _running),
        Rule("PULSE: ", _waiting),
        Rule("is not RUNNING or SCHEDULED", _alert),
        Rule("is scheduled to start in", _expected),
        Rule("Requeued SLURM job", _requeued),
        Rule("Received SIGTERM", _sigterm),
    ),
)
NVRX = Format(
    name="nvrx",
    is_training=False,
    rules=(
        *(Rule(mark, _said) for mark in _OF_NVRX),
        Rule("Joining cluster restart", _joined),
        Rule("has joined round", _joined),
        Rule("made NO progress", _joined),
    ),
)
