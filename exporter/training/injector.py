"""Strikes a rank with the faults planned for it, and remembers what has struck.

A fault strikes once in the life of a run: what has struck is remembered in files, because a fault
may end the process or the node it strikes. Standard library only.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from headway.exporter.training.faults import BREAKS_SAVES, STAGED, PlannedFault

_FOREVER = 10**6


class InjectedFaultError(RuntimeError):
    """The exception that a fault of type `exception` raises."""


class FaultInjector:
    """Strikes one rank with the faults planned for it and remembers those that have struck.

    A fault whose step was passed without it (the rank was down, or resumed beyond it) strikes
    at the next moment of its kind; none is dropped.
    """

    def __init__(
        self,
        planned: Sequence[PlannedFault],
        *,
        rank: int,
        memory: Path,
        announce: Callable[[str], None],
        wait_for_stop: Callable[[float], bool],
    ) -> None:
        """Strike `rank` as planned; `memory` is a folder shared by all processes.

        `announce` is told what is about to strike. `wait_for_stop` waits some seconds for the
        process to be told to stop, and returns whether it was.
        """
        self._planned = planned
        self._rank = rank
        self._memory = memory
        self._announce = announce
        self._wait_for_stop = wait_for_stop

    def pending(self) -> tuple[PlannedFault, ...]:
        """Return the faults of all ranks that have not struck yet."""
        return tuple(fault for fault in self._planned if not self._mark(fault).exists())

    def strike(self, at: str, completed: int) -> None:
        """Strike with the first fault that is due at this moment after `completed` steps."""
        for fault in self._planned:
            if fault.step > completed:
                return
            breaks_rank = fault.at == at and fault.type not in BREAKS_SAVES
            if breaks_rank and self._claim(fault):
                self._strike(fault, completed)

    def threatens(self, kind: str, completed: int) -> bool:
        """Return whether the save of `completed` steps is to be broken in this way on any rank."""
        return any(fault.type == kind and fault.step <= completed for fault in self.pending())

    def breaks(self, kind: str, completed: int) -> bool:
        """Return whether this rank has to break the save of `completed` steps in this way now."""
        return any(
            fault.type == kind and fault.step <= completed and self._claim(fault)
            for fault in self._planned
        )

    def _mark(self, fault: PlannedFault) -> Path:
        return self._memory / f"{fault.at}-{fault.step:06d}-rank-{fault.rank}-{fault.type}"

    def _claim(self, fault: PlannedFault) -> bool:
        mark = self._mark(fault)
        if fault.rank != self._rank or mark.exists():
            return False
        self._memory.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return False
        # A harness that waits for the mark learns from it whom it is about.
        os.write(descriptor, f"{os.getpid()}\n".encode())
        os.fsync(descriptor)
        os.close(descriptor)
        self._announce(f"injecting {words(fault)}")
        return True

    def _strike(self, fault: PlannedFault, completed: int) -> None:
        if fault.type in STAGED:
            while not self._wait_for_stop(1.0):
                pass
        else:
            _break(fault, completed)


def words(fault: PlannedFault) -> str:
    """Return a fault as it is announced."""
    where = "" if fault.at == "step" else f"at {fault.at} "
    return f"{fault.type} planned {where}after step {fault.step} into rank {fault.rank}"


def _break(fault: PlannedFault, completed: int) -> NoReturn:
    if fault.type == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault.type == "hang":
        # One call into C: a loop in Python would still look alive to a progress watchdog.
        time.sleep(_FOREVER)
        raise InjectedFaultError(f"the injected hang ended after {_FOREVER} s")
    raise InjectedFaultError(
        f"injected {fault.type} at {fault.at} after step {completed}, planned for step {fault.step}"
    )
