"""Who told a record: a rank, its launcher, the node's agent, the kernel, a driver, a person.

An envelope does not say so. A rank's own recorder is known by the start of its attempt, which
nobody else tells; of all other records the kind says who can have made it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from headway.events import (
    AttemptStarted,
    Fault,
    GpuFault,
    GpuSxid,
    GpuXid,
    Note,
    RankExited,
    RestartBudget,
    RestartPhase,
)
from headway.ledger import Ledger
from headway.ledger.breakage import WATCHDOGS
from headway.ledger.intake import Stamped

RANK = "rank"
PROGRAM = "program"
LAUNCHER = "launcher"
LAUNCHER_LOG = "launcher log"
PARENT = "headway run"
AGENT = "agent"
KERNEL = "kernel log"
DRIVER = "GPU driver"
LOG_FILE = "imported log"
ALERTS = "alerts"
PERSON = "person"
LEDGER = "ledger"
MEANINGS = {
    RANK: "recorded inside the rank's own process, whose start is known to 10 ms",
    PROGRAM: "a remark that the training program itself recorded",
    LAUNCHER: "what the launcher tells of its own work",
    LAUNCHER_LOG: "a line of the launcher or its rank monitor, at the time at which it was read",
    PARENT: "seen by headway run, the launcher's parent",
    AGENT: "seen by the node's agent",
    KERNEL: "a line of the node's kernel log",
    DRIVER: "read from the GPU's driver or a program that watches it",
    LOG_FILE: "read from a log file that was imported",
    ALERTS: "a notice that alerting sent",
    PERSON: "said by a person",
    LEDGER: "no record of its own: concluded from the others by Headway's ledger",
}
"""Every source, with what it means to come from it."""


class Tellers:
    """The producers of a run by what they are: recorders of ranks, and parents of launchers."""

    def __init__(self, facts: Iterable[Stamped]) -> None:
        """Find out from all facts of the run."""
        self._ranks: set[str] = set()
        self._parents: set[str] = set()
        self.imported = True
        """Whether all of it was read from logs afterwards."""
        for fact in facts:
            producer, event = fact.envelope.producer, fact.envelope.event
            self.imported = self.imported and _is_imported(fact)
            if isinstance(event, AttemptStarted):
                self._ranks.add(producer)
            elif isinstance(event, RestartPhase) or (
                isinstance(event, RankExited) and _is_known(event)
            ):
                self._parents.add(producer)

    def usual(self, source: str) -> str:
        """Return who tells what a source usually does: the log, where all was read from one."""
        return LOG_FILE if self.imported else source

    def source(self, fact: Stamped) -> str:
        """Return who told a record."""
        envelope, event = fact.envelope, fact.envelope.event
        if _is_imported(fact):
            return LOG_FILE
        if isinstance(event, GpuXid | GpuSxid | GpuFault):
            return KERNEL if event.line is not None else DRIVER
        if isinstance(event, RankExited):
            return PARENT if _is_known(event) else AGENT
        if envelope.producer in self._ranks:
            return PROGRAM if isinstance(event, Note) else RANK
        match event:
            case RestartPhase() | RestartBudget():
                return LAUNCHER
            case Fault() if event.kind in WATCHDOGS:
                return LAUNCHER_LOG
        return PARENT if envelope.producer in self._parents else AGENT


def first_fault(one: Mapping[str, Any], ledger: Ledger) -> Fault | None:
    """Return the record of an incident's first fault, where a fault was recorded as such."""
    place = one["first_fault"]
    told = [] if place is None else one["observations"][place]["events"]
    records = {(each["producer"], each["sequence"]) for each in told}
    for fact in ledger.book.facts:
        event, envelope = fact.envelope.event, fact.envelope
        if isinstance(event, Fault) and (envelope.producer, envelope.first_sequence) in records:
            return event
    return None


def _is_imported(fact: Stamped) -> bool:
    """Whether it was read from a log, whose times are those of a wall clock alone."""
    return fact.envelope.run is not None and fact.envelope.anchor == 0


def _is_known(end: RankExited) -> bool:
    """Whether it is told how a rank ended, which its parent alone can know."""
    return end.exit_code is not None or end.signal is not None
