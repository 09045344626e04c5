"""Compares what people were told about a simulated run with what it needed.

A page is right when it goes on while the run needs a person to be woken, for a reason that one of
its rules is about; pages for the same need are all right, but each is counted. A need is met by the
first such rule that anybody is told of. Tickets are judged alike, by needs of either urgency: what
is bad enough to wake somebody may be a ticket, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.paging.watching import Told
from headway.simulate.needs import NEEDS, Need

_LOW = ("TrainingGoodputLow", "InfrastructureGoodputLow", "GoodputBurnFast", "GoodputBurnSlow")
MEANT: Mapping[str, tuple[str, ...]] = {
    "loop": ("RestartLoop", "PersistentFault", "NotRecovered", "RestartBudgetExhausted"),
    "hang": ("RunHung",),
    "down": ("NotRecovered", "RestartBudgetExhausted", "RestartLoop", "PersistentFault"),
    "last_restart": ("RestartBudgetExhausted",),
    "forgotten": ("ResumedBelowNewestCheckpoint",),
    "starved": ("GoodputBurnFast",),
    "saves_fail": ("CheckpointStale",),
    "writes_slow": ("CheckpointWriteSlow", "CheckpointQueue"),
    "straggler": ("Straggler",),
    "broken_gpu": ("GpuFault",),
    "unreadable": ("CheckpointUnreadable",),
    "near_timeout": ("PhaseNearTimeout",),
    "few_restarts": ("RestartBudgetLow", "RestartBudgetExhausted"),
}
"""Rules that tell of a need for what it is."""
SUMMARIES = {"GoodputBurnSlow"}
"""Rules that sum up a day; what they sum up has been told of, or was nobody's to mend."""
_ALSO: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("loop", "hang", "down", "starved"), _LOW),
    "last_restart": ("RestartBudgetLow",),
    "saves_fail": ("ResumedBelowNewestCheckpoint",),
    "straggler": _LOW,
    "writes_slow": ("CheckpointStale",),
}
"""Rules that a need explains, too, though it should have been told of by another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one page or ticket was worth: the needs it is about, none if it is false."""

    told: Told
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """A need and how long after its begin somebody was told, in ns; None: never."""

    need: Need
    rule: str | None
    delay: int | None


def verdicts(found: Sequence[Told], needs: Sequence[Need], severity: str) -> list[Verdict]:
    """Return what each page, or each ticket, of a run is worth."""
    wanted = [one for one in needs if severity != "page" or NEEDS[one.kind] == "page"]
    return [
        Verdict(told=told, needs=tuple(one for one in wanted if _explains(one, told)))
        for told in found
        if told.severity == severity and not told.rules.keys() <= SUMMARIES
    ]


def met(found: Sequence[Told], needs: Sequence[Need], severity: str) -> list[Met]:
    """Return when each need of this urgency was told of; a ticket's also by a page."""
    said = [
        (time, rule, told)
        for told in found
        if severity != "page" or told.severity == "page"
        for rule, time in {**told.beside, **told.rules}.items()
    ]
    return [_met(need, said) for need in needs if NEEDS[need.kind] == severity]


def _met(need: Need, said: Sequence[tuple[int, str, Told]]) -> Met:
    times = [
        (max(0, time - need.begin), rule)
        for time, rule, told in said
        if rule in MEANT[need.kind] and time <= need.end and (told.end or need.end) > need.begin
    ]
    delay, rule = min(times, default=(None, None))
    return Met(need=need, rule=rule, delay=delay)


def _explains(need: Need, told: Told) -> bool:
    meant = (*MEANT[need.kind], *_ALSO.get(need.kind, ()))
    return told.begin <= need.end and any(
        rule in meant and need.begin <= time <= need.end for rule, time in told.rules.items()
    )
