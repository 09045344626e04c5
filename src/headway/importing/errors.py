"""Python's tracebacks and the last words of processes, whichever program they end.

Only the exception under a traceback counts, never a word in a sentence (design section 5).
"""

import re

from headway.importing.rules import Format, Rule
from headway.importing.sayings import Broke, Remark, Saying

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


FORMAT = Format(
    name="errors",
    is_training=False,
    rules=(
        Rule("Traceback (most recent call last)", _traceback),
        *(
            Rule(mark, _exception)
            for mark in ("Error", "Exception", "Interrupt", "Timeout", "Failure")
        ),
    ),
)
