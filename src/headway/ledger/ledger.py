"""The ledger of a run: every nanosecond in exactly one category, and the ratios from it.

A `Ledger` is a view of what was read of a run's events; it answers for the whole run or for any
window of it.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Literal

import numpy as np

from headway.ledger.account import Account
from headway.ledger.book import Book
from headway.ledger.checkpoints import Checkpoint
from headway.ledger.counts import step_counts
from headway.ledger.lanes import intervals_of
from headway.ledger.model import (
    AttemptSummary,
    CheckpointSummary,
    Interval,
    Problem,
    Range,
    StepCounts,
)
from headway.ledger.ratios import goodput
from headway.metrics import CATEGORIES, SPARE


class Ledger:
    """Where a run's time went; times in UTC ns, durations in ns, ratios 0 to 1."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.run = book.run
        self.as_of = book.as_of
        extent = book.extent
        self.start = book.as_of if extent is None else extent.start
        self.end = None if extent is None else extent.end
        self.state = "running" if extent is None else extent.state
        self.heard = None if extent is None else extent.heard
        """Time of the last sign of life; None where there was none."""
        self._safe = _durable(book)
        self._durable = max((save.step for save in self._safe), default=0)
        self._lost = self.state == "abandoned" or (
            self.state == "failed" and any(save.is_reported for save in book.saves)
        )
        # accounts begin in order; `_reached` is how far any of those up to each one reaches
        self._begins = list(accumulate((a.start for a in reversed(book.accounts)), min))[::-1]
        self._reached = list(accumulate((a.end for a in book.accounts), max))
        self._between = [piece.start for piece in book.between]
        self._attempt_begins = [attempt.begin for attempt in book.attempts]
        self._totals = self.amounts(self.start, self.closed_at)

    @property
    def closed_at(self) -> int:
        """End of the run, or `as_of` while it runs."""
        return self.as_of if self.end is None else self.end

    @property
    def provisional(self) -> bool:
        """Whether later events may still change it."""
        return self.end is None

    @property
    def elapsed(self) -> int:
        """Time from the first evidence of allocation to the end."""
        return max(self.closed_at - self.start, 0)

    @property
    def categories(self) -> Mapping[str, int]:
        """Time per leaf category; every declared one is present and they sum to `elapsed`."""
        return by_category(self._totals)

    @property
    def parts(self) -> Mapping[str, Mapping[str, int]]:
        """Time per part of the categories that have parts."""
        found: dict[str, dict[str, int]] = {}
        for (category, part), amount in sorted(self._totals.items()):
            if part and amount:
                found.setdefault(category, {})[part] = amount
        return found

    @property
    def training_good(self) -> tuple[str, ...]:
        """Custom categories that the run declared as training good."""
        return () if self.book.configured is None else self.book.configured.training_good

    @property
    def training_goodput(self) -> Range:
        """Training goodput over wall time."""
        return goodput(self.categories, self.elapsed, "training", self.training_good)

    @property
    def infrastructure_goodput(self) -> Range:
        """Infrastructure goodput over wall time."""
        return goodput(self.categories, self.elapsed, "infrastructure", self.training_good)

    @property
    def num_gpus(self) -> int | None:
        """GPUs held now, else the newest attempt's world size."""
        held = self.book.held.at(self.closed_at)
        return held if held else self._world(self.closed_at)

    def gpu_time(
        self,
        weight: Literal["held", "requested"] = "held",
        start: int | None = None,
        end: int | None = None,
    ) -> Mapping[str, int]:
        """GPU-ns per category, weighted by GPUs; `spare` is what no rank uses (rule 27).

        Between two times in UTC ns, by default of the whole run. Until the first allocation event
        the world size is the weight.
        """
        start = self.start if start is None else max(start, self.start)
        end = self.closed_at if end is None else min(end, self.closed_at)
        weights = self.book.held if weight == "held" else self.book.requested
        begins = self._attempt_begins
        edges = {start, end, *weights.times}
        edges.update(begins[bisect_left(begins, start) : bisect_right(begins, end)])
        cuts = [edge for edge in sorted(edges) if start <= edge <= end]
        found = Counter(dict.fromkeys((*CATEGORIES, SPARE.name), 0))
        for begin, finish in pairwise(cuts):
            world, known = self._world(begin), weights.at(begin)
            # until anyone says more, the ranks that run are all that is known
            gpus = (world or 0) if known is None else known
            active = gpus if world is None else min(world, gpus)
            for name, amount in by_category(self.amounts(begin, finish)).items():
                found[name] += amount * active
            found[SPARE.name] += (finish - begin) * (gpus - active)
        return dict(found)

    def gpus_at(self, time: int) -> int:
        """Return the GPUs held at a time in UTC ns, else the world size of the attempt then."""
        held = self.book.held.at(time)
        return (self._world(time) or 0) if held is None else held

    def _world(self, time: int) -> int | None:
        """Return the world size of the attempt at a time, between attempts of the last one."""
        attempts = self.book.attempts
        if not attempts:
            return None
        attempt = attempts[max(bisect_right(self._attempt_begins, time) - 1, 0)]
        return attempt.world_size or len(attempt.ranks)

    def amounts(self, start: int, end: int) -> Counter[tuple[str, str]]:
        """Return ns per (category, part) between two times within the run."""
        found: Counter[tuple[str, str]] = Counter()
        start, end = max(start, self.start), min(end, self.closed_at)
        low = max(bisect_right(self._between, start) - 1, 0)
        for piece in self.book.between[low : bisect_left(self._between, end)]:
            overlap = min(piece.end, end) - max(piece.start, start)
            if overlap > 0:
                found[piece.category, piece.part or ""] += overlap
        for account in self._accounts_between(start, end):
            found.update(account.amounts(start, end, self._durable, self._lost))
        return found

    def _accounts_between(self, start: int, end: int) -> Sequence[Account]:
        """Return the accounts that may hold time between two moments."""
        low = bisect_right(self._reached, start)
        return self.book.accounts[low : bisect_left(self._begins, end)]

    @property
    def steps(self) -> StepCounts:
        """Counts of optimizer steps."""
        return step_counts(self.book, self._durable, self._lost)

    @property
    def newest_step(self) -> int:
        """Steps in the newest state."""
        for segment in reversed(self.book.chain):
            return segment.base if segment.last is None else segment.last
        return 0

    @property
    def first_base(self) -> int:
        """Steps in the state with which the surviving chain begins; above 0 where inherited."""
        return min((segment.base for segment in self.book.chain if segment.on_chain), default=0)

    def surviving_step_at(self, time: int) -> int:
        """Return the newest surviving step completed by a time in UTC ns."""
        newest = self.first_base
        for account in self.book.accounts:
            if account.steps is None:
                continue
            rows = int(np.searchsorted(account.steps.end, time, side="right"))
            for begin, end, category, _ in account.fates(self._durable, self._lost):
                if category == "productive" and begin < rows:
                    newest = max(newest, int(account.steps.number[min(end, rows) - 1]))
        return newest

    @property
    def first_event(self) -> int:
        """Time of the first event."""
        facts = [event.time for event in self.book.facts[:1]]
        return min([*facts, *(attempt.begin for attempt in self.book.attempts)], default=self.start)

    @property
    def last_event(self) -> int:
        """Time of the last event."""
        facts = [event.time for event in self.book.facts[-1:]]
        return max([*facts, *(attempt.end for attempt in self.book.attempts)], default=self.start)

    @property
    def newest_durable(self) -> CheckpointSummary | None:
        """Newest checkpoint of the chain that could be loaded."""
        best = max(self._safe, key=lambda save: (save.step, save.durable_since or 0), default=None)
        return None if best is None else best.summary()

    @property
    def steps_at_risk(self) -> int:
        """Surviving steps that no durable checkpoint holds."""
        return max(self.newest_step - self._durable, 0)

    @cached_property
    def checkpoints(self) -> list[CheckpointSummary]:
        """Every save in order of time."""
        return [save.summary() for save in self.book.saves]

    @property
    def problems(self) -> list[Problem]:
        """What did not fit."""
        return self.book.problems

    @property
    def flags(self) -> list[str]:
        """How parts of the ledger are to be read."""
        return self.book.flags

    @property
    def attempts(self) -> list[AttemptSummary]:
        """Every attempt in order of its begin."""
        return [self._attempt(number) for number in range(len(self.book.attempts))]

    def is_alive(self, number: int) -> bool:
        """Whether an attempt, counted from 0, may still go on."""
        last = number == len(self.book.attempts) - 1
        return last and self.end is None and not self.book.attempts[number].ended

    @property
    def failed_starts(self) -> int:
        """Attempts that ended without a step; one that is still starting has not failed."""
        return sum(
            account.steps is None and not self.is_alive(number)
            for number, account in enumerate(self.book.accounts)
        )

    def _attempt(self, number: int) -> AttemptSummary:
        attempt = self.book.attempts[number]
        account = self.book.accounts[number]
        own = account.segments
        first = min((s.first for s in own if s.first is not None), default=None)
        last = max((s.last for s in own if s.last is not None), default=None)
        outcome = "progressed" if account.steps is not None else "no_step"
        formed = attempt.world_size is None or len(attempt.ranks) >= attempt.world_size
        if outcome == "no_step" and not formed:
            outcome = "never_formed"
        alive = self.is_alive(number)
        return AttemptSummary(
            attempt=attempt.identity,
            number=attempt.number,
            layer=attempt.layer,
            start=attempt.begin,
            end=None if alive else attempt.end,
            outcome=outcome,
            resumed=own[-1].base if own else None,
            checkpoint=own[-1].checkpoint if own else None,
            first_step=first,
            last_step=last,
            world_size=attempt.world_size or len(attempt.ranks),
            ended_by=_ended_by(account, alive),
        )

    @property
    def fate_terms(self) -> tuple[int, bool]:
        """Newest step in a durable checkpoint, and whether steps at risk are lost with the run."""
        return self._durable, self._lost

    def intervals(self) -> list[Interval]:
        """Return the whole run as intervals in order of time; steps of one fate are joined."""
        return intervals_of(self.book, self._durable, self._lost)


def by_category(totals: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Sum the parts of each category; every declared category is present."""
    found = dict.fromkeys(CATEGORIES, 0)
    for (category, _), amount in sorted(totals.items()):
        found[category] = found.get(category, 0) + amount
    return found


def _durable(book: Book) -> list[Checkpoint]:
    """Return the durable saves of states that the newest state came from."""
    reached: dict[tuple[str | None, int | None], int] = {}
    for segment in book.chain:
        if segment.on_chain:
            key = book.attempts[segment.attempt].identity, segment.opened
            reached[key] = max(reached.get(key, 0), segment.survives)
    return [
        save
        for save in book.saves
        if save.is_durable
        and save.scheduled is not None
        and save.step <= reached.get((save.attempt, save.opened), -1)
    ]


def _ended_by(account: Account, alive: bool) -> str | None:
    if alive:
        return None
    if account.broken.fault is not None:
        return "fault"
    return "stop" if account.attempt.stops else None
