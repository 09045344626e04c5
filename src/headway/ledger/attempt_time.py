"""Who owns an attempt's time before its first and after its last step (rules 13, 16, 17, 20-22,
25).

After the last step come, by precedence: closed phases, an announced stop, the stall up to the
first evidence of teardown, the teardown, what was cut short, the gap.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.events import RestartPhase
from headway.ledger.attempts import Attempt, Phase, RankLog
from headway.ledger.breakage import Breakage, breakage, last_done, stop_of
from headway.ledger.group import GroupSteps, Pace
from headway.ledger.pieces import Piece, clip, innermost, is_carved, paint

PARTS = ("import", "rendezvous", "model", "warmup")
"""Phases that only name a part of start-up."""
BEFORE_STEPS = ("startup", *PARTS)
STEP = "step"
"""Category of time that shares the fate of a completed step."""
UNKNOWN = Piece(0, 0, "unattributed", None)


@dataclass(frozen=True, slots=True)
class Closing:
    """How an attempt's last stretch is to be read.

    `end` is its end, or `as_of` while it lives; `finished` says that the run ended with it; `base`
    is the category of its time before a step; `states` what launchers and wrappers said from its
    last step to the begin of the next attempt.
    """

    end: int
    alive: bool
    finished: bool
    base: str
    pace: Pace
    states: tuple[tuple[int, RestartPhase], ...]


def attempt_pieces(
    attempt: Attempt, steps: GroupSteps | None, closing: Closing
) -> tuple[list[Piece], Breakage]:
    """Cover an attempt's time around its steps, and tell how it broke."""
    phases = {
        rank: log.phases if steps is None else steps.phases.get(rank, log.phases)
        for rank, log in attempt.ranks.items()
    }
    start = attempt.begin if steps is None else steps.last_end
    broken = breakage(attempt, phases, closing, start)
    if steps is None and not closing.alive:
        failed = Piece(attempt.begin, closing.end, "restart", "failed_start")
        stalled = [] if broken.watchdog is None else _stall(broken.watchdog, broken.teardown)
        return paint(attempt.begin, closing.end, [stalled], failed), broken
    before: list[Piece] = []
    if steps is not None:
        before = _before_first_step(attempt, steps, closing.base, phases)
    return before + _after(attempt, steps, phases, closing, broken, start), broken


def _before_first_step(
    attempt: Attempt, steps: GroupSteps, base: str, phases: dict[int, list[Phase]]
) -> list[Piece]:
    """Cover the stretch from the attempt's begin to its first step (rule 17)."""
    end = int(steps.begin[0])
    lead = phases[steps.lead_rank]
    shared = _startup(phases, base, _failed_until(attempt, phases, end))
    own = _startup({steps.lead_rank: lead}, base, _failed_until(attempt, phases, end))
    layers = [
        *(clip(layer, attempt.begin, steps.lead_from) for layer in shared),
        *(clip(layer, steps.lead_from, end) for layer in own[:1]),
        steps.lead_wait,
        *(clip(layer, steps.lead_from, end) for layer in own[1:]),
    ]
    return paint(attempt.begin, end, layers, Piece(0, 0, base, "other"))


def _failed_until(attempt: Attempt, phases: dict[int, list[Phase]], before: int) -> int:
    """Return the time of the last failed load; the loads up to it were in vain."""
    times = list(attempt.load_failures)
    times += [
        phase.end
        for listed in phases.values()
        for phase in listed
        if phase.name == "checkpoint_load" and phase.failed and phase.end is not None
    ]
    return max((time for time in times if time <= before), default=attempt.begin)


def _startup(phases: dict[int, list[Phase]], base: str, failed: int) -> list[list[Piece]]:
    """Return the leaves of start-up: what owns its time, then parts, the lowest rank first."""
    owned, parts = [], []
    for rank in sorted(phases):
        for leaf in _named(phases[rank], (*PARTS, "startup")):
            if leaf.category in BEFORE_STEPS:
                part = leaf.category if leaf.category in PARTS else "other"
                parts.append([leaf._replace(category=base, part=part)])
            elif leaf.category == "checkpoint_load" and leaf.start < failed:
                parts.append([leaf._replace(category=base, part="load_failed")])
            else:
                owned.append(leaf)
    return [owned, *parts]


def _named(phases: Iterable[Phase], extra: Sequence[str]) -> list[Piece]:
    return innermost(
        (phase.start, phase.end, phase.name, phase.start, phase.end)
        for phase in phases
        if phase.end is not None
        and phase.end > phase.start
        and (is_carved(phase.name) or phase.name in extra)
        and not (phase.failed and phase.name != "checkpoint_load")
    )


def _after(
    attempt: Attempt,
    steps: GroupSteps | None,
    phases: dict[int, list[Phase]],
    closing: Closing,
    broken: Breakage,
    start: int,
) -> list[Piece]:
    """Cover the stretch from the last completed step (or the begin) to the attempt's end."""
    end = closing.end
    if start >= end:
        return []
    done = last_done(phases, start)
    cut = _cut_short(attempt, phases, done, closing)
    stop = stop_of(attempt, start)
    stalls = [] if broken.fault is None else [max(done, broken.fault)]
    over = min(broken.teardown, end)
    struck = max(done, min([over, *broken.own, *([] if stop is None else [stop[0]])]))
    clean = not stalls and stop is None and not broken.torn and not closing.alive
    clean = clean and (closing.finished or attempt.ended)
    if steps is not None:
        if closing.alive or not (cut or clean):
            stalls += [done] if closing.pace.is_too_long(struck - done) else []
        else:
            stalls += [
                max(done, phase.start)
                for _, phase in cut
                if closing.pace.is_too_long((phase.end or struck) - phase.start)
            ]
    layers = [
        *_closed(attempt, steps, phases, closing, start),
        *_stopped(stop, cut),
        _stall(min(stalls), over) if stalls else [],
        [Piece(max(done, broken.teardown), end, "restart", "teardown")] if broken.torn else [],
        *([_open(phase, closing, steps, end)] for _, phase in cut),
    ]
    if steps is None:
        layers.append([Piece(start, end, closing.base, "other")])
    painted = paint(start, end, layers, UNKNOWN)
    return _shared(painted, closing.pace.gap) if clean and steps is not None else painted


def _stall(begin: int, end: int) -> list[Piece]:
    return [Piece(begin, end, "stalled", None)] if begin < end else []


def _stopped(stop: tuple[int, int] | None, cut: Sequence[tuple[int, Phase]]) -> list[list[Piece]]:
    """Return the stretch of an announced stop after the saves that it cut short (rule 22)."""
    if stop is None:
        return []
    begin, end = stop
    saves = [
        [Piece(max(phase.start, begin), end, "checkpoint_save", None)]
        for _, phase in cut
        if phase.name == "checkpoint_save" and phase.start < end
    ]
    return [*saves, [Piece(begin, end, "restart", "teardown")]]


def _closed(
    attempt: Attempt,
    steps: GroupSteps | None,
    phases: dict[int, list[Phase]],
    closing: Closing,
    start: int,
) -> list[list[Piece]]:
    """Return the closed phases of all ranks after the last step, the lowest rank first."""
    if steps is None:
        return _startup(phases, closing.base, _failed_until(attempt, phases, closing.end))
    layers = []
    for rank in sorted(phases):
        leaves = clip(_named(phases[rank], ()), start, closing.end)
        # a load after which nothing was trained gave nothing to train from
        layers.append(
            [
                leaf._replace(category="restart", part="load_failed")
                if leaf.category == "checkpoint_load"
                else leaf
                for leaf in leaves
            ]
        )
    return layers


def _shared(painted: list[Piece], left: int) -> list[Piece]:
    """Give a clean end's gap to the last step, up to the limit (rule 16)."""
    found = []
    for piece in painted:
        if piece.category != "unattributed":
            found.append(piece)
            continue
        cut = min(piece.end, piece.start + left)
        left -= cut - piece.start
        found += [Piece(piece.start, cut, STEP, None), piece._replace(start=cut)]
    return [piece for piece in found if piece.start < piece.end]


def _cut_short(
    attempt: Attempt, phases: dict[int, list[Phase]], done: int, closing: Closing
) -> list[tuple[int, Phase]]:
    """Return the steps and phases open at the end by rank, the innermost of each first.

    While the attempt lives only a heartbeat shows them. A heartbeat or a fault that names one
    without a begin shows it since the last completed step or phase.
    """
    found: list[tuple[int, Phase]] = []
    for rank, log in sorted(attempt.ranks.items()):
        opened = [
            phase
            for phase in phases[rank]
            if phase.end is None or (_is_cut(phase) and phase.end > done)
        ]
        beat = _beat(log, done)
        if closing.alive:
            found += [(rank, phase) for phase in beat]
            continue
        names = {phase.name for phase in opened}
        opened += [phase for phase in beat if phase.name not in names]
        for time, of, fault in attempt.faults:
            struck = fault.phase or (STEP if fault.step is not None else None)
            known = {phase.name for phase in opened}
            if of == rank and struck is not None and time >= done and struck not in known:
                opened.append(Phase(done, None, struck))
        found += [(rank, phase) for phase in sorted(opened, key=lambda p: -p.start)]
    return found


def _is_cut(phase: Phase) -> bool:
    return phase.failed and phase.name != "checkpoint_load"


def _beat(log: RankLog, done: int) -> list[Phase]:
    """Return the innermost open phase of a rank's newest heartbeat."""
    if log.heartbeat is None or log.heartbeat[0] < done or not log.heartbeat[1].open_phases:
        return []
    name = log.heartbeat[1].open_phases[-1]
    begun = [phase.start for phase in log.phases if phase.end is None and phase.name == name]
    return [Phase(max(begun, default=done), None, name)]


def _open(phase: Phase, closing: Closing, steps: GroupSteps | None, end: int) -> Piece:
    """Return what a step or phase is that was open at the end (rules 20 and 25)."""
    piece = Piece(phase.start, end if phase.end is None else phase.end, phase.name, None)
    if steps is None and phase.name in (*BEFORE_STEPS, STEP):
        part = phase.name if phase.name in PARTS else "other"
        return piece._replace(category=closing.base, part=part)
    if phase.name == STEP:
        return piece if closing.alive else piece._replace(category="rolled_back", part="partial")
    if phase.name == "checkpoint_load" and steps is not None:
        return piece._replace(category="restart", part="load_failed")
    return piece if is_carved(phase.name) else piece._replace(category="unattributed")
