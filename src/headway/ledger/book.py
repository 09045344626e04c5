"""From events to accounts: every nanosecond of a run given to one attempt or to the time between.

This module holds the order of the steps; each step's rules stand in its own module.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.events import (
    Allocation,
    Dropped,
    Envelope,
    Misuse,
    RestartPhase,
    RunConfigured,
    RunStarted,
)
from headway.ledger import checkpoints
from headway.ledger.account import Account
from headway.ledger.attempt_time import Closing, after_last_step, before_first_step, breakage
from headway.ledger.attempts import Attempt, group, launcher_states
from headway.ledger.extent import Extent, ending, extent
from headway.ledger.group import GroupSteps, Pace, group_steps
from headway.ledger.idle import Held, idle_pieces
from headway.ledger.intake import Intake, Stamped
from headway.ledger.lineage import Segment, segments, survival
from headway.ledger.model import Problem
from headway.ledger.overlap import resolve
from headway.ledger.pieces import Piece, clip


@dataclass(slots=True)
class Book:
    """What one reading of a run's events gives; the ledger answers questions from it."""

    run: str
    as_of: int
    extent: Extent | None
    events: list[Stamped]
    attempts: list[Attempt] = field(default_factory=list)
    accounts: list[Account] = field(default_factory=list)
    chain: list[Segment] = field(default_factory=list)
    saves: list[checkpoints.Checkpoint] = field(default_factory=list)
    saves_by_identity: dict[str, list[checkpoints.Checkpoint]] = field(default_factory=dict)
    between: list[Piece] = field(default_factory=list)
    held: Held = field(default_factory=lambda: Held([]))
    configured: RunConfigured | None = None
    run_name: str | None = None
    num_dropped: int = 0
    problems: list[Problem] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)


def read(run: str, intake: Intake, as_of: int) -> Book:
    """Read the events known at `as_of` (UTC ns) into a book."""
    events, quarantined = intake.stamped(as_of)
    ended = ending(events, as_of)
    attempts = group(events, as_of if ended is None else min(as_of, ended[0]), as_of)
    book = Book(run, as_of, extent(events, attempts, ended, as_of), events, attempts)
    for producer, count in sorted(quarantined.items()):
        book.problems.append(
            Problem(kind="absurd_time", detail=f"stamps of producer {producer}", count=count)
        )
    _facts(book)
    if book.extent is None:
        return book
    book.saves = checkpoints.read(events, as_of)
    steps = _paced(attempts, as_of)
    book.chain = segments(attempts, steps)
    for save in book.saves:
        book.saves_by_identity.setdefault(save.identity, []).append(save)
    book.problems += survival(book.chain, attempts, book.saves_by_identity)
    _account(book, book.extent, steps)
    return book


def _facts(book: Book) -> None:
    """Collect what events say about the run as a whole."""
    held = []
    for event in book.events:
        record = event.envelope.event
        if event.time > book.as_of:
            continue
        if isinstance(record, Allocation):
            held.append((event.time, record.gpus_held))
        elif isinstance(record, RunStarted):
            book.run_name = record.run_name
        elif isinstance(record, RunConfigured):
            book.configured = record
        elif isinstance(record, Dropped):
            book.num_dropped += record.count
        elif isinstance(record, Misuse):
            book.problems.append(_misuse(event.envelope, record))
    book.held = Held(held)
    if len({time for time, _ in held}) < len(set(held)):
        book.problems.append(
            Problem(kind="overlapping_allocations", detail="two allocations at one time")
        )


def _misuse(envelope: Envelope, record: Misuse) -> Problem:
    where = "" if envelope.rank is None else f" (rank {envelope.rank})"
    return Problem(kind=record.kind, detail=f"{record.detail or ''}{where}")


def _paced(attempts: Sequence[Attempt], as_of: int) -> list[GroupSteps | None]:
    """Return the group's steps of each attempt, each with the pace of the one before."""
    pace = Pace()
    found = []
    for attempt in attempts:
        steps = group_steps(attempt, pace, as_of)
        pace = pace if steps is None else steps.pace
        found.append(steps)
    return found


def _account(book: Book, span: Extent, steps: Sequence[GroupSteps | None]) -> None:
    attempts = book.attempts
    limit = book.as_of if span.end is None else span.end
    states = launcher_states(book.events, book.as_of)
    pace = Pace()
    cursor = span.start
    for number, (attempt, done) in enumerate(zip(attempts, steps, strict=True)):
        following = attempts[number + 1].begin if number + 1 < len(attempts) else None
        alive = following is None and not attempt.ended and span.end is None
        if not attempt.witnessed and not alive and span.state != "completed":
            book.flags.append(f"unwitnessed end of attempt {attempt.number}")
        end = limit if alive else min(attempt.end, limit)
        if following is None and span.state in ("completed", "stopped") and not attempt.ended:
            end = limit
        since = attempt.begin if done is None else done.last_end
        pace = pace if done is None else done.pace
        closing = Closing(
            end=end,
            alive=alive,
            finished=following is None and span.state in ("completed", "stopped"),
            base="startup" if number == 0 else "restart",
            pace=pace,
            states=[state for state in states if since <= state[0] <= end],
        )
        pieces = clip(_around(attempt, done, closing), 0, end)
        own = [segment for segment in book.chain if segment.attempt == number]
        broken = breakage(attempt, closing, since).fault is not None
        book.accounts.append(Account(attempt, done, pieces, own, broken))
        if attempt.begin > cursor:
            book.between += _idle(book, cursor, min(attempt.begin, limit), attempt, states)
        cursor = max(cursor, end)
    if cursor < limit:
        book.between += _idle(book, cursor, limit, None, states)
    if resolve(book.accounts):
        book.flags.append("split_brain")
    if not book.held.times:
        book.flags.append("no allocation events: GPU time is weighted by the world size")
    if any(len(attempt.ranks) == 1 and attempt.has_step for attempt in attempts):
        book.flags.append("single_rank")


def _around(attempt: Attempt, done: GroupSteps | None, closing: Closing) -> list[Piece]:
    if done is None and not closing.alive:
        return [Piece(attempt.begin, closing.end, "restart", "failed_start")]
    if done is None:
        return after_last_step(attempt, None, closing)
    before = before_first_step(attempt, done, closing.base, done.phases)
    return before + after_last_step(attempt, done, closing)


def _lead(earlier: Sequence[Account]) -> str | None:
    """Return what the time is until a launcher notices the end of the last attempt."""
    if not earlier:
        return None
    if earlier[-1].steps is None:
        return "restart"
    return "stalled" if earlier[-1].broken else None


def _idle(
    book: Book,
    start: int,
    end: int,
    following: Attempt | None,
    states: Sequence[tuple[int, RestartPhase]],
) -> list[Piece]:
    """Cover the time up to the following attempt, or after the last one."""
    since = start
    earlier = book.accounts if following is None else book.accounts[: following.number - 1]
    if earlier:
        account = earlier[-1]
        since = account.attempt.begin if account.steps is None else account.steps.last_end
    said = [state for state in states if since <= state[0] <= end]
    in_process = following is not None and following.layer == "in_process"
    base = "restart" if earlier else "startup"
    return idle_pieces(start, end, said, base, in_process, _lead(earlier), book.held)
