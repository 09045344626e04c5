"""From events to accounts: every nanosecond of a run given to one attempt or to the time between.

This module holds the order of the steps; each step's rules stand in their own module. A reader
keeps what it derived from each attempt, so that reading again after new events costs what is new.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from headway.events import RestartBudget, RestartPhase, RunConfigured
from headway.ledger import checkpoints
from headway.ledger.account import Account
from headway.ledger.attempt_reader import AttemptReader
from headway.ledger.attempt_time import Closing, attempt_pieces
from headway.ledger.attempts import Attempt
from headway.ledger.extent import Extent, extent
from headway.ledger.frozen import Frozen, frozen_steps, thawed
from headway.ledger.group import GroupSteps, group_steps
from headway.ledger.growth import grown
from headway.ledger.idle import Held, idle_pieces, launches
from headway.ledger.intake import DAY, Intake, Stamped
from headway.ledger.lineage import Ancestry, Segment, segments_of
from headway.ledger.model import Problem
from headway.ledger.overlap import resolve
from headway.ledger.pace import Pace
from headway.ledger.pieces import Piece, clip
from headway.ledger.run_facts import RunFacts, read_facts
from headway.ledger.steps import count_until
from headway.ledger.stretches import in_stretches


@dataclass(slots=True)
class Book:
    """What one reading of a run's events gives; the ledger answers questions from it."""

    run: str
    as_of: int
    extent: Extent | None
    facts: Sequence[Stamped]
    of_nodes: Sequence[Stamped] = ()
    attempts: list[Attempt] = field(default_factory=list)
    accounts: list[Account] = field(default_factory=list)
    chain: list[Segment] = field(default_factory=list)
    saves: list[checkpoints.Checkpoint] = field(default_factory=list)
    ancestry: Ancestry = field(default_factory=lambda: Ancestry([], [], {}))
    between: list[Piece] = field(default_factory=list)
    held: Held = field(default_factory=lambda: Held([]))
    requested: Held = field(default_factory=lambda: Held([]))
    configured: RunConfigured | None = None
    run_name: str | None = None
    num_dropped: int = 0
    budgets: Mapping[str, RestartBudget] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Derived:
    """What was derived from one attempt, and from what."""

    attempt: Attempt
    before: Pace
    steps: GroupSteps | None
    segments: list[Segment]
    closing: Closing | None = None
    account: Account | None = None


class BookReader:
    """Reads the events of one run again and again."""

    def __init__(self, run: str) -> None:
        self.run = run
        self._attempts = AttemptReader()
        self._derived: dict[str, _Derived] = {}
        self._thawing: dict[str, tuple[int, Frozen | None]] = {}
        self._told: tuple[int, int, RunFacts] | None = None

    def read(self, intake: Intake, as_of: int) -> Book:
        """Read the events known at `as_of` (UTC ns) into a book."""
        quarantined = intake.settle(as_of)
        facts = intake.sane(intake.facts.in_order(), as_of)
        told = self._read_facts(intake, facts, as_of)
        ended = told.ended
        steps_until = as_of if ended is None else min(as_of, ended[0])
        attempts = self._attempts.read(intake, steps_until, as_of)
        strays = intake.sane(intake.strays.in_order(), as_of)
        known = bisect_right(strays, as_of, key=lambda event: event.time)
        stray = strays[known - 1].time if known else 0
        span = extent(told.signs, attempts, ended, stray, as_of)
        book = Book(self.run, as_of, span, facts, intake.of_nodes.in_order(), attempts)
        for producer, count in sorted(quarantined.items()):
            book.problems.append(
                Problem(kind="absurd_time", detail=f"stamps of producer {producer}", count=count)
            )
        count = count_until(strays, as_of)
        if count:
            detail = "steps and other records that name no attempt and belong to none so far"
            book.problems.append(Problem(kind="no_attempt", detail=detail, count=count))
        book.held, book.requested = told.held, told.requested
        book.configured, book.run_name = told.configured, told.run_name
        book.num_dropped, book.budgets = told.num_dropped, told.budgets
        book.problems += told.problems
        if book.extent is None:
            return book
        derived = self._derive(attempts, intake, steps_until)
        chains = [
            [
                replace(segment, survives=0, on_chain=False, attempt=number)
                for segment in one.segments
            ]
            for number, one in enumerate(derived)
        ]
        book.chain = [segment for segments in chains for segment in segments]
        openings = _openings(book)
        if told.openings != openings:
            told.openings = openings
            memory = intake.memory.in_order()
            told.saves = checkpoints.read(facts, openings, as_of, memory)
            told.saves_by_identity = defaultdict(list)
            for save in told.saves:
                told.saves_by_identity[save.identity].append(save)
        book.saves = told.saves
        book.ancestry = Ancestry(book.chain, attempts, told.saves_by_identity)
        book.problems += book.ancestry.mark_survival()
        for one, segments in zip(derived, chains, strict=True):
            if one.segments != segments:
                # a ledger given out before keeps what survived then
                one.segments = segments
                one.account = None if one.account is None else one.account.of(segments)
        _Accounting(book, book.extent, derived, intake, told.said).run()
        return book

    def _read_facts(self, intake: Intake, facts: Sequence[Stamped], as_of: int) -> RunFacts:
        """Return what the facts tell, as read before if that was all and nothing came since."""
        events, memory = intake.facts.in_order(), intake.memory.in_order()
        versions = intake.facts.version, intake.memory.version
        past = all(listed[-1].time <= as_of for listed in (events, memory) if listed)
        whole = facts is events and past
        if whole and self._told is not None and self._told[:2] == versions:
            return self._told[2]
        told = read_facts(facts, as_of)
        self._told = (*versions, told) if whole else None
        return told

    def _derive(
        self, attempts: Sequence[Attempt], intake: Intake, steps_until: int
    ) -> list[_Derived]:
        """Return the group's steps and segments of each attempt, at the pace of the one before."""
        pace = Pace()
        found = []
        for attempt in attempts:
            known = self._derived.get(attempt.identity)
            if known is None or known.attempt is not attempt or known.before != pace:
                steps = None
                if known is not None and known.steps is not None and known.before == pace:
                    steps = grown(known.steps, known.attempt, attempt, pace)
                frozen = self._frozen(intake, attempt.identity)
                if steps is None and frozen is not None:
                    steps = thawed(frozen, attempt, pace, steps_until)
                steps = steps or in_stretches(attempt, pace) or group_steps(attempt, pace)
                known = _Derived(attempt, pace, steps, segments_of(attempt, steps))
                self._derived[attempt.identity] = known
            pace = pace if known.steps is None else known.steps.inherited
            found.append(known)
        return found

    def _frozen(self, intake: Intake, attempt: str) -> Frozen | None:
        """Return the steps of an attempt of which the raw records are gone."""
        segments = intake.segments.get(attempt)
        if segments is None:
            return None
        known = self._thawing.get(attempt)
        if known is None or known[0] != len(segments):
            known = self._thawing[attempt] = len(segments), frozen_steps(segments)
        return known[1]


def _openings(book: Book) -> dict[str, list[int]]:
    """Return when each attempt began to train from each of its states."""
    found: dict[str, list[int]] = {attempt.identity: [] for attempt in book.attempts}
    for segment in book.chain:
        found[book.attempts[segment.attempt].identity].append(segment.opened)
    return found


class _Accounting:
    """Gives each moment of a run to one attempt or to the time between."""

    def __init__(
        self,
        book: Book,
        span: Extent,
        derived: Sequence[_Derived],
        intake: Intake,
        said: Sequence[tuple[int, str, RestartPhase]],
    ) -> None:
        self.book = book
        self.span = span
        self.derived = derived
        self.intake = intake
        self.limit = book.as_of if span.end is None else span.end
        self.launching = launches(said, [one.attempt.begin for one in derived], self.limit)
        self.wrapper_spoke = max(
            (time for time, _, state in said if state.layer == "in_process"), default=None
        )

    def run(self) -> None:
        """Fill the book's accounts and the time between them."""
        book, cursor = self.book, self.span.start
        unwitnessed = []
        for position, one in enumerate(self.derived):
            if one.attempt.begin > cursor:
                self._idle(cursor, min(one.attempt.begin, self.limit), one.attempt)
            closing = self._closing(position)
            book.accounts.append(_opened(one, closing))
            if not (one.attempt.ended or closing.alive or closing.finished):
                unwitnessed.append(str(one.attempt.number))
            cursor = max(cursor, closing.end)
        if cursor < self.limit:
            self._idle(cursor, self.limit, None)
        book.accounts, split = resolve(book.accounts)
        if unwitnessed:
            book.flags.append(f"unwitnessed end of attempt {', '.join(unwitnessed)}")
        if split:
            book.flags.append("split_brain")
        if not book.held.times:
            book.flags.append("no_allocation")
        if any(len(one.attempt.ranks) == 1 and one.steps is not None for one in self.derived):
            book.flags.append("single_rank")

    def _closing(self, position: int) -> Closing:
        one, span = self.derived[position], self.span
        attempt = one.attempt
        last = position + 1 == len(self.derived)
        alive = last and not attempt.ended and span.end is None
        finished = last and span.end is not None and span.state != "abandoned"
        goes_on = alive or (finished and one.steps is not None and not attempt.ended)
        return Closing(
            end=self.limit if goes_on else min(attempt.end, self.limit),
            alive=alive,
            finished=finished,
            base="restart" if position else "startup",
            pace=one.before if one.steps is None else one.steps.pace,
            following=None if last else self.derived[position + 1].attempt.begin,
        )

    def _is_in_process(self, earlier: Account, following: Attempt | None) -> bool:
        """Whether the living processes bring the run back themselves, as far as is known yet."""
        if following is not None:
            return following.layer == "in_process"
        spoke = self.wrapper_spoke is not None and self.wrapper_spoke >= earlier.last_step_end
        return spoke and self.span.end is None

    def _idle(self, start: int, end: int, following: Attempt | None) -> None:
        """Cover the time up to the following attempt, or after the last one."""
        silence = end if following is None else self._silence(start, end)
        earlier = self.book.accounts[-1] if self.book.accounts else None
        lead = None
        if earlier is not None and earlier.lead is not None and earlier.lead.end > start:
            lead = earlier.lead._replace(start=start)
        in_process = (
            earlier is not None
            and earlier.attempt.survivors(start) > 0
            and self._is_in_process(earlier, following)
        )
        base = "startup" if earlier is None else "restart"
        pieces = idle_pieces(start, end, self.launching, base, in_process, lead, self.book.held)
        if silence < end:
            if "revised_after_abandonment" not in self.book.flags:
                self.book.flags.append("revised_after_abandonment")
            quiet = idle_pieces(silence, end, (), base, False, None, self.book.held)
            pieces = [*clip(pieces, start, silence), *quiet]
        self.book.between += pieces

    def _silence(self, start: int, end: int) -> int:
        """Return since when a day or more without evidence lies before an attempt (rule 6)."""
        if end - start < DAY:
            return end
        times = [start, *self.intake.times_between(start, end, self.book.as_of), end]
        return min((a for a, b in pairwise(times) if b - a >= DAY), default=end)


def _opened(one: _Derived, closing: Closing) -> Account:
    """Return the account of an attempt, the one made before if nothing about it changed."""
    if one.account is None or one.closing != closing:
        around = attempt_pieces(one.attempt, one.steps, closing)
        pieces = clip(around.pieces, 0, closing.end)
        one.closing = closing
        one.account = Account(
            one.attempt, one.steps, pieces, one.segments, around.broken, around.lead
        )
    return one.account
