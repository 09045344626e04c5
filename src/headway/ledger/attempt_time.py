"""Who owns an attempt's time before its first and after its last step (rules 13, 17, 20-22, 25).

A failed start is restart as a whole. After the last step come, by precedence: closed phases, an
announced stop, the stall up to the first evidence of teardown, the teardown.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from headway.events import Fault, RankExited, RestartPhase
from headway.ledger.attempts import OTHERS_SIGNALS, Attempt, Phase, RankLog
from headway.ledger.group import GroupSteps, Pace
from headway.ledger.pieces import Piece, clip, innermost, is_carved, leaves, paint

PARTS = ("import", "rendezvous", "model", "warmup")
"""Phases that only name a part of start-up."""
OWN_TIME = ("exception", "gpu_oom", "numerical")
"""Faults recorded at the moment they struck."""
TEARDOWN_PHASES = ("abort", "stop_workers", "finalize")
STEP = "step"
"""Category of time that shares the fate of a completed step."""


@dataclass(frozen=True, slots=True)
class Closing:
    """How an attempt's last stretch is to be read.

    `end` is its end, or `as_of` while it lives; `finished` says that the run ended with it; `base`
    is the category of its time before a step; `states` what launchers and wrappers said since its
    last step.
    """

    end: int
    alive: bool
    finished: bool
    base: str
    pace: Pace
    states: tuple[tuple[int, RestartPhase], ...]


def before_first_step(
    attempt: Attempt, steps: GroupSteps, base: str, phases: dict[int, list[Phase]]
) -> list[Piece]:
    """Cover the stretch from the attempt's begin to its first step."""
    start, end = attempt.begin, int(steps.begin[0])
    failed = max((time for time in attempt.load_failures if time <= end), default=start)
    best = [Piece(start, start, base, None)]
    most = -1
    for rank in sorted(phases):
        named = _startup_pieces(phases[rank], base, failed)
        inside = clip(named, start, end)
        carved = sum(p.end - p.start for p in inside if p.category != base)
        if carved > most:
            most, best = carved, inside
    return paint(start, end, [best], Piece(0, 0, base, "other"))


def _startup_pieces(phases: Iterable[Phase], base: str, failed: int) -> list[Piece]:
    """Name the leaves of start-up; a load before `failed` did not give the state trained from."""
    pieces = []
    for leaf in innermost(
        (phase.start, phase.end, phase.name)
        for phase in phases
        if phase.end is not None
        and phase.end > phase.start
        and (is_carved(phase.name) or phase.name in PARTS)
    ):
        if leaf.category in PARTS:
            pieces.append(leaf._replace(category=base, part=leaf.category))
        elif leaf.category == "checkpoint_load" and leaf.start < failed:
            cut = min(failed, leaf.end)
            pieces.append(Piece(leaf.start, cut, base, "load_failed"))
            pieces.append(leaf._replace(start=cut))
        else:
            pieces.append(leaf)
    return [piece for piece in pieces if piece.start < piece.end]


def after_last_step(attempt: Attempt, steps: GroupSteps | None, closing: Closing) -> list[Piece]:
    """Cover the stretch from the last completed step (or the begin) to the attempt's end."""
    start = attempt.begin if steps is None else steps.last_end
    end = closing.end
    if start >= end:
        return []
    phases = _phases(attempt, steps)
    done = _busiest(phases, start, end)
    stop = _stop(attempt, closing, start)
    evidence = breakage(attempt, closing, start)
    rest = Piece(0, 0, "unattributed", None)
    if steps is None and evidence.fault is not None:
        rest = Piece(0, 0, closing.base, "other")
    if evidence.fault is not None:
        stalled = max(evidence.fault, _last_closed(phases, start, evidence.teardown))
        layers = [
            done,
            _stop_pieces(attempt, stop, end, closing),
            *_broken_off(phases, evidence, stalled, closing, start),
        ]
        return paint(start, end, layers, rest)
    if stop is not None:
        step = _gap_pieces(start, stop, closing.pace.gap, STEP, None, forward=True)
        return paint(start, end, [done, _stop_pieces(attempt, stop, end, closing), step], rest)
    if closing.alive:
        return paint(start, end, [done, *_live(attempt, steps, phases, closing, start)], rest)
    if steps is None:
        return paint(start, end, [done], Piece(0, 0, closing.base, "other"))
    tail = paint(start, end, [done], Piece(0, 0, STEP, None))
    left = closing.pace.gap
    covered = []
    for piece in tail:
        if piece.category != STEP:
            covered.append(piece)
            continue
        cut = min(piece.end, piece.start + left)
        left -= cut - piece.start
        covered += [piece._replace(end=cut), Piece(cut, piece.end, "unattributed", None)]
    return [piece for piece in covered if piece.start < piece.end]


def _phases(attempt: Attempt, steps: GroupSteps | None) -> dict[int, list[Phase]]:
    known = {} if steps is None else steps.phases
    return {rank: known.get(rank, log.phases) for rank, log in attempt.ranks.items()}


def _busiest(phases: dict[int, list[Phase]], start: int, end: int) -> list[Piece]:
    """Return the closed phases of the rank that spent most time in them."""
    best: list[Piece] = []
    most = 0
    for rank in sorted(phases):
        closed = [phase for phase in phases[rank] if not phase.failed]
        inside = clip(leaves(closed), start, end)
        spent = sum(piece.end - piece.start for piece in inside)
        if spent > most:
            most, best = spent, inside
    return best


def _last_closed(phases: dict[int, list[Phase]], start: int, end: int) -> int:
    ends = [
        phase.end
        for listed in phases.values()
        for phase in listed
        if phase.end is not None and not phase.failed and phase.name != STEP
    ]
    return max((time for time in ends if start < time <= end), default=start)


def _stop(attempt: Attempt, closing: Closing, start: int) -> int | None:
    """Return when an announced stop takes over; without an exit it has no effect."""
    if closing.alive or not attempt.stops or not attempt.exits:
        return None
    return max(min(time for time, _ in attempt.stops), start)


def _stop_pieces(attempt: Attempt, stop: int | None, end: int, closing: Closing) -> list[Piece]:
    if stop is None:
        return []
    cut_short = [
        Piece(max(phase.start, stop), phase.end or end, "checkpoint_save")
        for log in attempt.ranks.values()
        for phase in log.phases
        if phase.name == "checkpoint_save" and (phase.end is None or phase.failed)
        if (phase.end or end) > stop
    ]
    saves = sorted(cut_short)[:1]
    return [*saves, Piece(stop, end, "restart", "teardown")]


@dataclass(frozen=True, slots=True)
class Breakage:
    """When the attempt broke, when its teardown began, and which rank broke first."""

    fault: int | None
    teardown: int
    rank: int | None


def breakage(attempt: Attempt, closing: Closing, start: int) -> Breakage:
    """Weigh faults, exits and teardown after the last completed step (rules 20 and 21)."""
    stop = _stop(attempt, closing, start)
    found = []
    for time, rank, fault in attempt.faults:
        if time >= start and (stop is None or time <= stop):
            found.append((fault_start(time, fault, start), time, rank))
    for time, rank, exit_ in attempt.exits:
        if time >= start and is_breakage(exit_) and (stop is None or time <= stop):
            found.append((start, time, rank))
    settled = closing.alive or closing.finished or stop is not None
    if not found and not settled and not _is_clean(attempt):
        found.append((start, closing.end, None))
    if not found:
        return Breakage(None, closing.end, None)
    begin, _, rank = min(found, key=lambda item: (item[0], item[1]))
    first_seen = min(found, key=lambda item: item[1])[2]
    evidence = [closing.end]
    evidence += [
        time
        for time, state in closing.states
        if state.phase in TEARDOWN_PHASES and state.state == "began" and time >= begin
    ]
    for time, peer, exit_ in attempt.exits:
        others = isinstance(exit_, RankExited) and exit_.by in OTHERS_SIGNALS
        signalled = exit_.signal is not None and peer != first_seen
        if time >= begin and (others or signalled):
            evidence.append(time)
    return Breakage(begin, min(evidence), rank)


def fault_start(time: int, fault: Fault, last: int) -> int:
    """Return when a fault struck: its own time, or the end of what was last completed."""
    if fault.kind in OWN_TIME:
        return max(time, last)
    waited = fault.ran_for if fault.ran_for is not None else fault.timeout
    return last if waited is None else max(time - waited, last)


def is_breakage(exit_: object) -> bool:
    """Whether a rank's exit is a fault of its own, not part of a teardown."""
    if isinstance(exit_, RankExited) and exit_.by in OTHERS_SIGNALS:
        return False
    signal, code = getattr(exit_, "signal", None), getattr(exit_, "exit_code", None)
    return signal is not None or (code is not None and code != 0)


def _is_clean(attempt: Attempt) -> bool:
    return bool(attempt.exits) and all(
        exit_.signal is None and not exit_.exit_code for _, _, exit_ in attempt.exits
    )


def _broken_off(
    phases: dict[int, list[Phase]],
    evidence: Breakage,
    stalled: int,
    closing: Closing,
    start: int,
) -> list[list[Piece]]:
    """Return stall and teardown, then what was cut short before, then the gap before that."""
    teardown = max(evidence.teardown, min(stalled, closing.end))
    cut_short = _cut_short(phases, evidence.rank, start, stalled)
    names = innermost(cut_short)
    begin = min((piece.start for piece in names), default=stalled)
    pieces = []
    for piece in names:
        if closing.pace.is_too_long(stalled - piece.start):
            stalled = piece.start
            break
        if piece.category == STEP:
            pieces.append(piece._replace(category="rolled_back", part="partial"))
        else:
            pieces.append(piece)
    gap = []
    if any(name == STEP for _, _, name in cut_short) and begin < stalled:
        gap = _gap_pieces(start, begin, closing.pace.gap, "rolled_back", "partial")
    return [
        [
            Piece(stalled, teardown, "stalled", None),
            Piece(teardown, closing.end, "restart", "teardown"),
        ],
        pieces,
        gap,
    ]


def _cut_short(
    phases: dict[int, list[Phase]], rank: int | None, start: int, stalled: int
) -> list[tuple[int, int, str]]:
    """Return what the faulting rank (else the lowest that shows it) was doing at the fault."""
    order = sorted(phases, key=lambda number: (number != rank, number))
    for number in order:
        found = [
            (max(phase.start, start), min(phase.end or stalled, stalled), phase.name)
            for phase in phases[number]
            if (phase.end is None or phase.failed)
            and phase.start < stalled
            and (phase.end is None or phase.end > start)
            and (phase.name == STEP or is_carved(phase.name))
        ]
        if found:
            return found
    return []


def _gap_pieces(
    start: int, end: int, limit: int, category: str, part: str | None, *, forward: bool = False
) -> list[Piece]:
    """Give a gap to the step it belongs to, up to the limit; `forward` counts from its start."""
    if forward:
        return [Piece(start, min(end, start + limit), category, part)]
    return [Piece(max(start, end - limit), end, category, part)]


def _live(
    attempt: Attempt,
    steps: GroupSteps | None,
    phases: dict[int, list[Phase]],
    closing: Closing,
    start: int,
) -> list[list[Piece]]:
    """Read the time since the last evidence of a living attempt (rule 25)."""
    now = closing.end
    if steps is not None and closing.pace.is_too_long(now - start):
        return [[Piece(start, now, "stalled", None)]]
    layers = []
    beats = [
        (log.heartbeat[0], -log.rank, log)
        for log in attempt.ranks.values()
        if log.heartbeat is not None and log.heartbeat[0] >= start
    ]
    if beats:
        time, _, log = max(beats, key=lambda beat: beat[:2])
        layers.append(_open_piece(log, time, now, steps, closing))
    if steps is None:
        seen = max(log.last_evidence for log in attempt.ranks.values())
        begun = _startup_pieces(
            next(iter(phases.values())), closing.base, max(attempt.load_failures, default=start)
        )
        layers += [clip(begun, start, seen), [Piece(start, seen, closing.base, "other")]]
    return layers


def _open_piece(
    log: RankLog, time: int, now: int, steps: GroupSteps | None, closing: Closing
) -> list[Piece]:
    if log.heartbeat is None or not log.heartbeat[1].open_phases:
        return []
    name = log.heartbeat[1].open_phases[-1]
    begun = [phase.start for phase in log.phases if phase.end is None and phase.name == name]
    since = begun[-1] if begun else time
    if is_carved(name):
        return [Piece(since, now, name, None)]
    if steps is None and name != STEP:
        return [Piece(since, now, closing.base, name if name in PARTS else "other")]
    return []
