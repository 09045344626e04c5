"""Which steps survive (rules 10 and 11): the chain from the newest state back to step 0.

Worked example: segment 1 runs steps 1-800 and writes A at 400; segment 2 resumes from A and runs
401-900. The chain is segment 2 up to 900, then segment 1 up to 400: steps 401-800 of segment 1
are rolled back.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headway.ledger.attempts import Attempt
from headway.ledger.checkpoints import Checkpoint, writer
from headway.ledger.group import GroupSteps
from headway.ledger.model import Problem
from headway.ledger.ranksteps import FALLS

State = tuple[str | None, int | None]
"""An attempt and when it began to train from a state."""


@dataclass(slots=True)
class Segment:
    """Steps of one attempt from one restored state on.

    `completed` is the number of steps in that state (None: no `resumed` recorded), `first` and
    `last` the steps executed (None: none), `survives` the last of its steps on the chain. It
    `opened` when the state became the attempt's, `time` is that of `resumed`, else of its first
    step.
    """

    attempt: int
    index: int
    completed: int | None
    checkpoint: str | None
    opened: int
    time: int
    first: int | None = None
    last: int | None = None
    survives: int = 0
    on_chain: bool = False

    @property
    def base(self) -> int:
        """Steps in the state from which it trained; the step number wins over the record."""
        if self.first is None:
            return self.completed or 0
        if self.completed is None:
            return self.first - 1
        return min(self.completed, self.first - 1)


def segments_of(attempt: Attempt, done: GroupSteps | None) -> list[Segment]:
    """Return the segments of one attempt in order of time, those that say something of a state."""
    number = attempt.number - 1
    rows: dict[int, tuple[int, int]] = {}
    if done is not None:
        cuts = (np.flatnonzero(done.segment[1:] != done.segment[:-1]) + 1).tolist()
        edges = [0, *cuts, len(done.segment)]
        indexes = done.segment[edges[:-1]].tolist()
        rows = dict(zip(indexes, pairwise(edges), strict=True))
    found = []
    for position, opening in enumerate(attempt.openings):
        index = position * FALLS
        if opening.resumed is None and index not in rows:
            continue
        segment = Segment(
            number, index, opening.completed, opening.checkpoint, opening.opened, opening.opened
        )
        if opening.resumed is not None:
            segment.time = opening.resumed
        found.append(segment)
    known = {segment.index: segment for segment in found}
    for index, (first, after) in rows.items():
        if done is None:
            break
        begin = int(done.begin[first])
        if index not in known:
            # the step number fell without a word about the state it fell back to
            known[index] = Segment(number, index, None, None, begin, begin)
        segment = known[index]
        if attempt.openings[index // FALLS].resumed is None:
            segment.time = begin
        segment.first, segment.last = int(done.number[first]), int(done.number[after - 1])
    return [segment for _, segment in sorted(known.items())]


class Ancestry:
    """Which segment each segment was trained from."""

    def __init__(
        self,
        chain: Sequence[Segment],
        attempts: Sequence[Attempt],
        checkpoints: Mapping[str, Sequence[Checkpoint]],
    ) -> None:
        self._chain = chain
        self._checkpoints = checkpoints
        self._trained: dict[State, list[int]] = {}
        """Which segments, in order, were trained from a state of an attempt."""
        for position, segment in enumerate(chain):
            state = attempts[segment.attempt].identity, segment.opened
            self._trained.setdefault(state, []).append(position)

    def mark_survival(self) -> list[Problem]:
        """Mark in each segment the last step that survives; return what does not fit.

        The newest state is the latest segment with a step or a `resumed`.
        """
        problems: list[Problem] = []
        position: int | None = len(self._chain) - 1 if self._chain else None
        limit: int | None = None
        while position is not None:
            segment = self._chain[position]
            segment.on_chain = True
            last = segment.base if segment.last is None else segment.last
            segment.survives = last if limit is None else min(last, limit)
            limit = segment.base if limit is None else min(limit, segment.base)
            position = self._parent(position, segment.base, problems)
        return problems

    def parent(self, position: int, limit: int) -> int | None:
        """Return the segment that holds step `limit` of the state a segment trained from."""
        return self._parent(position, limit, [])

    def _before(self, position: int, save: Checkpoint) -> int | None:
        """Return the last segment before a position that can have written a save."""
        listed = self._trained.get((save.attempt, save.opened), ())
        earlier = bisect_left(listed, position)
        return listed[earlier - 1] if earlier else None

    def _parent(self, position: int, limit: int, problems: list[Problem]) -> int | None:
        """Return the earlier segment that holds a step, and tell what does not fit."""
        chain = self._chain
        segment = chain[position]
        if limit <= 0:
            return None
        if segment.checkpoint is not None:
            saves = self._checkpoints.get(segment.checkpoint, ())
            known = [save for save in saves if self._before(position, save) is not None]
            save = writer(known, segment.time)
            if save is not None:
                return self._before(position, save)
            if not saves:
                detail = f"resumed from {segment.checkpoint!r}, which nobody scheduled"
                problems.append(Problem(kind="unknown_checkpoint", detail=detail))
        for earlier in range(position - 1, -1, -1):
            candidate = chain[earlier]
            if candidate.last is not None and candidate.base < limit <= candidate.last:
                return earlier
        highest = max((s.last for s in chain[:position] if s.last is not None), default=0)
        if segment.completed is not None and limit > highest > 0:
            detail = f"resumed at step {limit}, above the highest step {highest}"
            problems.append(Problem(kind="resume_above_highest", detail=detail))
        return None
