"""Who ended a rank, as far as the evidence tells. Pure."""

import signal
from dataclasses import dataclass

_OWN_CRASH = frozenset(
    {
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGSEGV,
        signal.SIGSYS,
        signal.SIGTRAP,
    }
)
"""Signals that a process brings upon itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is known about the end of one rank's process.

    `code` is as Python gives it, negative for a signal; `None` where nobody saw it.
    """

    code: int | None
    closed_by_launcher: bool = False
    """Whether the launcher said that it sent a signal to this process."""
    watchdog_fired: bool = False
    """Whether the launcher's watchdog fired for this rank just before."""
    out_of_memory: bool = False
    """Whether there is evidence that the kernel killed this process for lack of memory."""
    stopped_by: str | None = None
    """Who told the command itself to end before that: `person` or `scheduler`."""


def ended_by(ending: Ending) -> str:
    """Return who ended the rank, by the choices of `rank.exited`.

    SIGKILL is the kernel's only with evidence of a lack of memory; otherwise whoever said that it
    would end the process did, and `unknown` where nobody said so.
    """
    code = ending.code
    if code == 0:
        return "itself"
    if code == -signal.SIGKILL and ending.out_of_memory:
        return "kernel"
    if code is not None and -code in _OWN_CRASH and not ending.closed_by_launcher:
        return "itself"
    if ending.closed_by_launcher or (ending.watchdog_fired and (code is None or code < 0)):
        return "launcher"
    if ending.stopped_by is not None:
        return ending.stopped_by
    return "itself" if code is not None and code > 0 else "unknown"
