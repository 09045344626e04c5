"""Exceptions as faults: when and in which step or phase each struck.

What is known about an exception is written on the exception: whoever keeps one in a table keeps
alive the frames that it passed, and their tensors.
"""

import re

from headway.events import Fault, StopAnnounced
from headway.exporter.recording.plain_values import LONGEST_TEXT, qualified

_GLOO = re.compile(r"gloo/.*Timed out waiting (\d+)ms for \w+ operation")
_NCCL = re.compile(
    r"collective operation timeout: .*Timeout\(ms\)=(\d+)\) ran for (\d+) milliseconds"
)
"""How PyTorch's two transports say that a collective operation took too long."""
_MILLISECOND = 1_000_000
_LEFT, _RECORDED = "_headway_left", "_headway_recorded"


def note_left(error: BaseException, monotonic: int, phase: str, step: int | None) -> None:
    """Note what an exception left first, and when: the innermost block knows best."""
    if not hasattr(error, _LEFT):
        _note(error, _LEFT, (monotonic, phase, step))


def is_recorded(error: BaseException) -> bool:
    """Return whether `told` was asked about this exception before."""
    return getattr(error, _RECORDED, False)


def told(error: BaseException) -> tuple[Fault | StopAnnounced, int | None]:
    """Return what an exception is, and its monotonic time where it is known."""
    import traceback  # reads source files: only when something broke

    _note(error, _RECORDED, True)
    monotonic, phase, step = _left(error)
    if isinstance(error, KeyboardInterrupt):
        return StopAnnounced(reason="operator"), monotonic
    out_of_memory = any(
        kind.__name__ == "OutOfMemoryError" and kind.__module__.partition(".")[0] == "torch"
        for kind in type(error).__mro__
    )
    limit, waited = _collective_timeout(error)
    words = "".join(traceback.format_exception(error))
    found = Fault(
        kind="gpu_oom" if out_of_memory else "exception" if limit is None else "collective_timeout",
        message=str(error)[:LONGEST_TEXT],
        exception=qualified(type(error)),
        traceback=words[-LONGEST_TEXT:],
        ran_for=waited,
        timeout=limit,
        phase=phase,
        step=step,
    )
    return found, monotonic


def _note(error: BaseException, name: str, value: object) -> None:
    BaseException.__setattr__(error, name, value)  # an exception may be a frozen dataclass


def _left(error: BaseException) -> tuple[int | None, str | None, int | None]:
    for candidate in (error, error.__cause__, error.__context__):
        left: tuple[int, str, int | None] | None = getattr(candidate, _LEFT, None)
        if left is not None:
            return left
    return None, None, None


def _collective_timeout(error: BaseException) -> tuple[int | None, int | None]:
    """Return the limit that a collective operation exceeded and how long it waited, in ns."""
    if not isinstance(error, RuntimeError):  # all that torch.distributed raises
        return None, None
    words = str(error)
    if told := _GLOO.search(words):
        limit = waited = int(told[1])
    elif told := _NCCL.search(words):
        limit, waited = int(told[1]), int(told[2])
    else:
        return None, None
    return limit * _MILLISECOND, waited * _MILLISECOND
