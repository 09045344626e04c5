"""Who owns an attempt's time before its first and after its last step (rules 13, 16, 17, 20-22,
25).

After the last step come, by precedence: closed phases, an announced stop, the stall up to the
first evidence of teardown, the teardown, what was cut short, the gap.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.ledger.attempts import Attempt, Phase, RankLog
from headway.ledger.breakage import Breakage, breakage, stop_of
from headway.ledger.group import GroupSteps
from headway.ledger.pace import Pace
from headway.ledger.phases import LOAD_FAILED, phases_without_steps
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
    is the category of its time before a step; `following` is the begin of the next attempt.
    """

    end: int
    alive: bool
    finished: bool
    base: str
    pace: Pace
    following: int | None


@dataclass(frozen=True, slots=True)
class Around:
    """An attempt's time around its steps, how it broke, and what goes on after its end."""

    pieces: list[Piece]
    broken: Breakage
    lead: Piece | None = None


def attempt_pieces(attempt: Attempt, steps: GroupSteps | None, closing: Closing) -> Around:
    """Cover an attempt's time around its steps."""
    if steps is None:
        phases = phases_without_steps(attempt)
        start = attempt.begin
    else:
        phases, start = steps.phases, steps.last_end
    failed = steps is None and not closing.alive
    broken = breakage(attempt, phases, closing, start, failed)
    if failed:
        whole = Piece(attempt.begin, closing.end, "restart", "failed_start")
        stalled = [] if broken.watchdog is None else _stall(broken.watchdog, broken.teardown)
        stalled = clip(stalled, attempt.begin, closing.end)
        pieces = paint(attempt.begin, closing.end, [stalled], whole)
        unseen = whole._replace(start=closing.end, end=broken.teardown)
        return Around(pieces, broken, unseen)
    before = [] if steps is None else _before_first_step(attempt, steps, closing.base, phases)
    after, stalled = _after(attempt, steps, phases, closing, broken, start)
    lead = stalled[0]._replace(start=closing.end) if stalled and steps is not None else None
    return Around(before + after, broken, lead)


def _before_first_step(
    attempt: Attempt, steps: GroupSteps, base: str, phases: dict[int, list[Phase]]
) -> list[Piece]:
    """Cover the stretch from the attempt's begin to its first step (rule 17)."""
    end = int(steps.begin[0])
    waits = [Phase(*wait, "data_wait") for wait in steps.lead_wait]
    shared = _startup(phases, base)
    own = _startup({steps.lead_rank: [*phases[steps.lead_rank], *waits]}, base)
    layers = [
        *(clip(layer, attempt.begin, steps.lead_from) for layer in shared),
        *(clip(layer, steps.lead_from, end) for layer in own),
    ]
    return paint(attempt.begin, end, layers, Piece(0, 0, base, "other"))


def _startup(phases: dict[int, list[Phase]], base: str) -> list[list[Piece]]:
    """Return the leaves of start-up: what owns its time, then parts, the lowest rank first."""
    owned, parts = [], []
    for rank in sorted(phases):
        for leaf in _named(phases[rank], BEFORE_STEPS):
            if leaf.category in BEFORE_STEPS:
                part = leaf.category if leaf.category in PARTS else "other"
                parts.append([leaf._replace(category=base, part=part)])
            elif leaf.category == LOAD_FAILED:
                parts.append([leaf._replace(category=base, part=LOAD_FAILED)])
            else:
                owned.append(leaf)
    return [owned, *parts]


def _named(phases: Iterable[Phase], extra: Sequence[str]) -> list[Piece]:
    return innermost(
        (phase.start, phase.end, phase.name, phase.start, phase.end)
        for phase in phases
        if phase.is_closed
        and phase.end is not None
        and phase.end > phase.start
        and (is_carved(phase.name) or phase.name in (LOAD_FAILED, *extra))
    )


def _after(
    attempt: Attempt,
    steps: GroupSteps | None,
    phases: dict[int, list[Phase]],
    closing: Closing,
    broken: Breakage,
    start: int,
) -> tuple[list[Piece], list[Piece]]:
    """Cover the stretch from the last completed step (or the begin) to the attempt's end.

    Returns the stall, which may go on after that end, too.
    """
    end, done = closing.end, broken.done
    cut = _cut_short(attempt, phases, done, closing, steps is not None)
    stop = stop_of(attempt, start)
    stalls = [] if broken.fault is None else [max(done, broken.fault)]
    over = broken.teardown
    struck = max(done, min([over, end, *broken.own, *([] if stop is None else [stop[0]])]))
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
    stalled = _stall(min(stalls), over) if stalls else []
    opened = [[_open(phase, closing, steps, end)] for _, phase in cut]
    broke = [
        *_stopped(stop, cut),
        stalled,
        [Piece(max(done, over), end, "restart", "teardown")] if broken.torn else [],
    ]
    if steps is None:
        owned, *parts = _startup(phases, closing.base)
        layers = [owned, *broke, *opened, *parts]
        rest = Piece(0, 0, closing.base, "other")
    else:
        gaps = [
            [_gap_before(piece, closing.pace.gap)]
            for (piece,), (_, phase) in zip(opened, cut, strict=True)
            if phase.name == STEP
        ]
        layers = [*_closed(phases, start, end), *broke, *opened, *gaps]
        rest = UNKNOWN
    painted = paint(start, end, [clip(layer, start, end) for layer in layers], rest)
    if clean and steps is not None:
        painted = _shared(painted, closing.pace.gap)
    return painted, stalled


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


def _closed(phases: dict[int, list[Phase]], start: int, end: int) -> list[list[Piece]]:
    """Return the closed phases of all ranks after the last step, the lowest rank first."""
    layers = []
    for rank in sorted(phases):
        leaves = clip(_named(phases[rank], ()), start, end)
        # a load after which nothing was trained gave nothing to train from
        layers.append(
            [
                leaf._replace(category="restart", part=LOAD_FAILED)
                if leaf.category in ("checkpoint_load", LOAD_FAILED)
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
    attempt: Attempt,
    phases: dict[int, list[Phase]],
    done: int,
    closing: Closing,
    stepped: bool,
) -> list[tuple[int, Phase]]:
    """Return the steps and phases open at the end by rank, the innermost of each first.

    While the attempt lives only a heartbeat shows them. A heartbeat or a fault that names one
    without a begin shows it since the last completed step or phase.
    """
    found: list[tuple[int, Phase]] = []
    for rank, log in sorted(attempt.ranks.items()):
        beat = _beat(log, phases[rank], done, stepped)
        if closing.alive:
            found += [(rank, phase) for phase in beat]
            continue
        opened = [
            phase
            for phase in phases[rank]
            if (phase.end is None or (_is_cut(phase) and phase.end > done))
            and _tells(phase.name, stepped)
        ]
        names = {phase.name for phase in opened}
        opened += [phase for phase in beat if phase.name not in names]
        for time, of, fault in attempt.faults:
            struck = fault.phase or (STEP if fault.step is not None else None)
            if of != rank or time < done or struck is None or not _tells(struck, stepped):
                continue
            if all(phase.name != struck for phase in opened):
                opened.append(Phase(done, None, struck))
        found += [(rank, phase) for phase in sorted(opened, key=lambda p: -p.start)]
    return found


def _tells(name: str, stepped: bool) -> bool:
    """Whether an open phase says what the time was; parts of a start do not once steps are done."""
    return name == STEP or is_carved(name) or (name in BEFORE_STEPS and not stepped)


def _is_cut(phase: Phase) -> bool:
    return phase.failed and phase.name != "checkpoint_load"


def _beat(log: RankLog, phases: Sequence[Phase], done: int, stepped: bool) -> list[Phase]:
    """Return the innermost open phase of a rank's newest heartbeat."""
    if log.heartbeat is None or log.heartbeat[0] < done:
        return []
    names = [name for name in log.heartbeat[1].open_phases if _tells(name, stepped)]
    if not names:
        return []
    begun = [phase.start for phase in phases if phase.end is None and phase.name == names[-1]]
    return [Phase(max(begun, default=done), None, names[-1])]


def _gap_before(step: Piece, limit: int) -> Piece:
    """Return the gap that belongs to a step cut short as it would to a whole one (rule 16)."""
    return step._replace(start=step.start - limit, end=step.start)


def _open(phase: Phase, closing: Closing, steps: GroupSteps | None, end: int) -> Piece:
    """Return what a step or phase is that was open at the end (rules 20 and 25)."""
    piece = Piece(phase.start, end if phase.end is None else phase.end, phase.name, None)
    if steps is None and phase.name in (*BEFORE_STEPS, STEP):
        part = phase.name if phase.name in PARTS else "other"
        return piece._replace(category=closing.base, part=part)
    if phase.name == STEP:
        return piece if closing.alive else piece._replace(category="rolled_back", part="partial")
    if phase.name == "checkpoint_load" and steps is not None:
        return piece._replace(category="restart", part=LOAD_FAILED)
    return piece
