"""Python's tracebacks and the last words of processes, whichever program they end.

Only the exception under a traceback counts, never a word in a sentence (design section 5).
"""

import re

from headway.importing.rules import Format, Rule
from headway.importing.sayings import Broke, LeftRank, Remark, Saying
from headway.launcher_log.lines import SIGNALS

TRACEBACK = "traceback"
_EXCEPTION = re.compile(
    r"^(?:\[[^\]]{1,80}\]:?\s{0,3}|\d{1,6}:\s?){0,3}((?:[A-Za-z_]\w{0,60}\.){0,8}"
    r"[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Timeout|Exit|Failure))(?:: (.{0,2000}))?\s*$"
)
_KINDS = (
    ("gpu_oom", ("OutOfMemoryError", "CUDA out of memory", "HIP out of memory")),
    ("host_oom", ("MemoryError", "Cannot allocate memory")),
    (
        "storage",
        ("No space left on device", "Stale file handle", "Input/output error", "[Errno 5]"),
    ),
    (
        "network",
        ("DistNetworkError", "ConnectionResetError", "ConnectionRefusedError", "BrokenPipeError"),
    ),
)
_SECONDARY = (
    "ConnectionResetError",
    "ConnectionRefusedError",
    "BrokenPipeError",
    "Connection closed by peer",
    "Connection reset by peer",
    "ncclRemoteError",
    "DistBackendError",
    "ChildFailedError",
    "SignalException",
    "CalledProcessError",
)


_SIGNAL = "|".join(name for name in SIGNALS if name != "Out Of Memory")
_SHELL = re.compile(
    r"^(?:\S{1,300}: line \d{1,9}:\s{1,9}\d{1,10} )?"
    rf"(?:{_SIGNAL})(?:\s{{1,9}}\(core dumped\))?(?:$|\s{{2,40}}\S)"
)
"""A shell's own line about a command that a signal ended, in a script or by itself."""
_MPIRUN = re.compile(
    r"process rank (\d{1,9}) with PID \d{1,10} on node \S{1,255} exited on signal (\d{1,3})\b"
)
_DEEPSPEED = re.compile(r"\] exits with return code = (-?\d{1,9})\s*$")
_FATAL = re.compile(rf"^(?:\[[^\]]{{1,80}}\]:?\s{{0,3}}){{0,3}}Fatal Python error: ({_SIGNAL})\s*$")


def _traceback(line: str) -> Saying | None:
    return Remark(kind=TRACEBACK, text="")


def _exception(line: str) -> Saying | None:
    found = _EXCEPTION.search(line)
    if found is None:
        return None
    message = found[2] or ""
    whole = f"{found[1]}: {message}"
    kind = next((name for name, words in _KINDS if any(w in whole for w in words)), "exception")
    return Broke(
        kind=kind,
        message=message[:1000],
        exception=found[1],
        secondary=any(word in whole for word in _SECONDARY),
    )


def _shell(line: str) -> Saying | None:
    found = _SHELL.search(line.rstrip())
    return None if found is None else Broke(kind="signal", message=line.strip()[:500])


def _mpirun(line: str) -> Saying | None:
    found = _MPIRUN.search(line)
    return None if found is None else LeftRank(code=-int(found[2]), rank=int(found[1]))


def _deepspeed(line: str) -> Saying | None:
    found = _DEEPSPEED.search(line)
    if found is None or not int(found[1]):
        return None
    kind = "signal" if found[1].startswith("-") else "exception"
    return Broke(kind=kind, message=found[0].removeprefix("] "))


def _fatal(line: str) -> Saying | None:
    found = _FATAL.search(line)
    return None if found is None else Broke(kind="signal", message=found[0].strip())


FORMAT = Format(
    name="errors",
    is_training=False,
    rules=(
        Rule("Traceback (most recent call last)", _traceback),
        *(
            Rule(mark, _exception)
            for mark in ("Error", "Exception", "Interrupt", "Timeout", "Failure")
        ),
        *(Rule(name, _shell) for name in SIGNALS),
        Rule("exited on signal", _mpirun),
        Rule("exits with return code", _deepspeed),
        Rule("Fatal Python error", _fatal),
    ),
)
