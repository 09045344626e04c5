"""What owns the time of an attempt after its last completed step (rules 16, 20 to 22 and 25)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headway.events import AttemptEnded, Fault, Heartbeat, RankExited, RestartPhase, StopAnnounced
from oracle.attempts import BEFORE_STEPS, Attempt, Phase, limit, slack, usual

OWN_TIME = ("exception", "gpu_oom", "numerical")
WATCHDOGS = ("collective_timeout", "heartbeat_timeout", "section_timeout", "hang")
State = Literal["live", "ended", "closed"]
OUTSIDERS = ("launcher", "scheduler", "person")


@dataclass(frozen=True)
class Breakage:
    """One fault: when it struck, whether it told so itself, when it was seen, on which rank."""

    start: int
    own: bool
    seen: int
    rank: int | None
    watchdog: bool


@dataclass(frozen=True)
class Tail:
    """What is known of the stretch [begin, end) after the last completed step or phase."""

    begin: int
    end: int
    stalled: tuple[int, int] | None
    teardown: tuple[int, int] | None
    torn: int | None
    stop: tuple[int, int] | None
    cut: Sequence[Phase]
    clean: bool
    slack: int


def last_done(attempt: Attempt) -> int:
    """Return the end of the last completed step or closed phase."""
    ends = [attempt.begin, *(g.end for g in attempt.group)]
    return max(ends + [p.end for p in attempt.phases if p.end is not None])


def tail(
    attempt: Attempt,
    found: Sequence[Attempt],
    end: int,
    state: State,
    following: int | None,
) -> Tail:
    """Judge the stretch up to `end`, the attempt's end or the moment of asking.

    A live attempt may go on; the run of a closed one was declared over while nothing is known of
    its exit. `following` is the begin of the next attempt: teardown may be seen as late as that.
    """
    begin = last_done(attempt)
    stepped = attempt.group[-1].end if attempt.group else attempt.begin
    faults = [fault for fault in _breakages(attempt, stepped) if fault.seen >= stepped]
    if not attempt.group and state != "live":
        faults = [fault for fault in faults if fault.watchdog]
    faults = [fault for fault in faults if not _consequence(fault, faults)]
    faults.sort(key=lambda fault: (fault.start, fault.seen, fault.rank or 0))
    evidence = _teardown(attempt, faults[0].rank if faults else None, bool(faults))
    evidence = [time for time in evidence if time >= stepped]
    torn = min(evidence, default=None)
    if torn is not None and following is not None and torn > following:
        torn = None
    stop = _stop(attempt, stepped)
    clean = not faults and torn is None and stop is None
    clean = clean and (state == "closed" or (state == "ended" and attempt.exited))
    cut = _cut(attempt, begin, state == "live")

    over = end if torn is None else torn
    until = [over, end] + [fault.start for fault in faults if fault.own]
    struck = max(begin, min(until + ([stop[0]] if stop else [])))
    stalls = [max(begin, fault.start) for fault in faults[:1]]
    most = limit(usual(attempt, found, len(attempt.group))) if attempt.group else None
    if most is not None:
        if state == "live" or (not cut and not clean):
            stalls += [begin] if struck - begin > most else []
        else:
            stalls += [max(begin, p.begin) for p in cut if (p.end or struck) - p.begin > most]
    return Tail(
        begin=begin,
        end=end,
        stalled=(min(stalls), over) if stalls and min(stalls) < over else None,
        teardown=None if torn is None else (max(begin, torn), end),
        torn=torn,
        stop=stop,
        cut=cut,
        clean=clean,
        slack=slack(attempt, found, len(attempt.group)),
    )


def _breakages(attempt: Attempt, stepped: int) -> list[Breakage]:
    found = []
    nobody_knows = last_done(attempt)
    for fact in attempt.facts:
        event = fact.event
        if isinstance(event, Fault):
            start, own = nobody_knows, False
            waited = event.timeout if event.kind in WATCHDOGS else None
            waited = waited if event.ran_for is None else event.ran_for
            if waited is not None:
                start, own = max(stepped, fact.time - waited), True
            elif event.kind in OWN_TIME:
                start, own = fact.time, True
            rank = fact.rank if fact.rank is not None else event.suspect_rank
            watchdog = event.ran_for is not None or event.kind in WATCHDOGS
            found.append(Breakage(start, own, fact.time, rank, watchdog))
        elif isinstance(event, AttemptEnded | RankExited) and fact.rank is not None:
            by = event.by if isinstance(event, RankExited) else "unknown"
            died = event.signal is not None or event.exit_code not in (None, 0)
            if died and by not in OUTSIDERS:
                found.append(Breakage(nobody_knows, False, fact.time, fact.rank, False))
    return found


def _consequence(fault: Breakage, faults: Sequence[Breakage]) -> bool:
    """Say whether an observation without a time of its own follows one that has it."""
    return not fault.own and any(
        other.own and other.start <= fault.seen for other in faults if other is not fault
    )


def _teardown(attempt: Attempt, culprit: int | None, broken: bool) -> list[int]:
    """Return when teardown was seen (rule 21)."""
    times = []
    for fact in attempt.facts:
        event = fact.event
        if isinstance(event, RestartPhase) and event.phase in ("abort", "stop_workers"):
            times.append(fact.time)
        elif isinstance(event, AttemptEnded | RankExited) and fact.rank is not None:
            outsider = isinstance(event, RankExited) and event.by in OUTSIDERS
            peer = broken and fact.rank != culprit and event.signal is not None
            if outsider or peer:
                times.append(fact.time)
    return times


def _stop(attempt: Attempt, stepped: int) -> tuple[int, int] | None:
    """Return the stretch of an announced stop (rule 22)."""
    notices = [fact.time for fact in attempt.of(StopAnnounced)]
    if not notices or not attempt.exits:
        return None
    begin, end = max(stepped, min(notices)), max(attempt.exits.values())
    return (begin, end) if begin < end else None


def _cut(attempt: Attempt, begin: int, live: bool) -> list[Phase]:
    """Return the steps and phases that were open at the end, by what shows them.

    While the attempt is live only a heartbeat shows them; a heartbeat or a fault without a
    matching begin shows them since the last completed step or phase.
    """
    off = BEFORE_STEPS if attempt.group else ()  # they mean nothing once steps are done
    beats: dict[int, Phase] = {}
    for fact in attempt.of(Heartbeat):
        assert isinstance(fact.event, Heartbeat)
        if fact.rank is not None and fact.time >= begin:
            beats.pop(fact.rank, None)
            names = [name for name in fact.event.open_phases if name not in off]
            if names:
                name = names[-1]
                begun = [p.begin for p in attempt.open if (p.rank, p.name) == (fact.rank, name)]
                beats[fact.rank] = Phase(fact.rank, name, max(begun, default=begin), None)
    shown = list(beats.values())
    if live:
        return shown
    cut = [p for p in attempt.open if (p.end is None or p.end > begin) and p.name not in off]
    cut += [p for p in shown if not any((c.rank, c.name) == (p.rank, p.name) for c in cut)]
    for fact in attempt.of(Fault):
        event = fact.event
        assert isinstance(event, Fault)
        struck = event.phase or ("step" if event.step is not None else None)
        if fact.time < begin or fact.rank is None or struck is None or struck in off:
            continue
        if not any((c.rank, c.name) == (fact.rank, struck) for c in cut):
            cut.append(Phase(fact.rank, struck, begin, None))
    return cut
