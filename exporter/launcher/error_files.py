"""What torchelastic's error files and NVRx's cycle files say. Pure: the text in, the facts out."""

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headway.events import Fault

_LONGEST = 8000
_NAME = re.compile(r"([A-Za-z_][\w.]{0,200})(?:: |$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One cycle of NVRx's launcher; times are UTC ns, `ended` is `None` while it goes on.

    NVRx 0.6 writes as its end the moment the next one begins, 0.7 the moment of the failure.
    """

    number: int
    began: int | None
    ended: int | None
    log_file: str | None
    active_nodes: str
    standby_nodes: str


def error_of(text: str) -> Fault | None:
    """Return the exception that a rank left in its error file; `None` where it holds none."""
    content = _object(text)
    told = content.get("message")
    extra: Any = {}
    if isinstance(told, dict):
        extra = told.get("extraInfo")
        told = told.get("message")
    if not isinstance(told, str):
        return None
    name = _NAME.match(told)
    stack = extra.get("py_callstack") if isinstance(extra, dict) else None
    out_of_memory = name is not None and name[1].endswith("OutOfMemoryError")
    return Fault(
        kind="gpu_oom" if out_of_memory else "exception",
        message=told[:_LONGEST],
        exception=None if name is None else name[1],
        traceback=stack[-_LONGEST:] if isinstance(stack, str) else None,
    )


def cycle_of(text: str) -> Cycle | None:
    """Return the cycle that a cycle-info file describes; `None` where it describes none."""
    content = _object(text)
    number = content.get("cycle_number")
    if type(number) is not int or number < 0:
        return None
    log_file = content.get("cycle_log_file")
    return Cycle(
        number=number,
        began=_time(content.get("cycle_start_time")),
        ended=_time(content.get("cycle_end_time")),
        log_file=log_file if isinstance(log_file, str) and log_file else None,
        active_nodes=_listed(content.get("active_nodes")),
        standby_nodes=_listed(content.get("standby_nodes")),
    )


def _object(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _listed(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)[:_LONGEST]
    return str(value)[:_LONGEST] if value else ""


def _time(value: object) -> int | None:
    if not isinstance(value, str) or not value.endswith("Z"):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
    except (ValueError, OverflowError):
        return None
