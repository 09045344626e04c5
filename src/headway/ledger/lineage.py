"""Which steps survive (rules 10 and 11): the chain from the newest state back to step 0.

Worked example: segment 1 runs steps 1-800 and writes A at 400; segment 2 resumes from A and runs
401-900. The chain is segment 2 up to 900, then segment 1 up to 400: steps 401-800 of segment 1
are rolled back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headway.ledger.attempts import Attempt
from headway.ledger.checkpoints import Checkpoint, writer
from headway.ledger.group import GroupSteps
from headway.ledger.model import Problem


@dataclass(slots=True)
class Segment:
    """Steps of one attempt from one restored state on.

    `completed` is the number of steps in that state (None: no `resumed` recorded), `first` and
    `last` the steps executed (None: none), `survives` the last of its steps on the chain.
    """

    attempt: int
    index: int
    completed: int | None
    checkpoint: str | None
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
    """Return the segments of one attempt in order of time."""
    number = attempt.number - 1
    resumes = max(
        (attempt.ranks[rank].resumed for rank in sorted(attempt.ranks)), key=len, default=[]
    )
    if done is None:
        if not resumes:
            return []
        time, record = resumes[-1]
        return [Segment(number, 0, record.completed, record.checkpoint, time)]
    found = []
    edges = np.searchsorted(done.segment, np.arange(int(done.segment[-1]) + 2)).tolist()
    for index, (first, after) in enumerate(pairwise(edges)):
        earlier = [item for item in resumes if item[0] <= int(done.start[first])]
        previous = int(done.start[first - 1]) if first else None
        fresh = [item for item in earlier if previous is None or item[0] > previous]
        segment = Segment(number, index, None, None, int(done.begin[first]))
        if fresh:
            segment.time, record = fresh[-1]
            segment.completed, segment.checkpoint = record.completed, record.checkpoint
        segment.first, segment.last = int(done.number[first]), int(done.number[after - 1])
        found.append(segment)
    return found


def survival(
    chain: Sequence[Segment],
    attempts: Sequence[Attempt],
    checkpoints: Mapping[str, Sequence[Checkpoint]],
) -> list[Problem]:
    """Mark in each segment the last step that survives; return what does not fit.

    The newest state is the latest segment with a step or a `resumed`.
    """
    problems = []
    position = len(chain) - 1
    limit: int | None = None
    visited: set[int] = set()
    while position >= 0 and position not in visited:
        visited.add(position)
        segment = chain[position]
        segment.on_chain = True
        last = segment.last if segment.last is not None else segment.base
        segment.survives = last if limit is None else min(last, limit)
        limit = segment.base if limit is None else min(limit, segment.base)
        if limit <= 0:
            break
        parent, trouble = _parent(position, limit, chain, attempts, checkpoints)
        problems += trouble
        if parent is None:
            break
        position = parent
    return problems


def parent_of(
    position: int,
    limit: int,
    chain: Sequence[Segment],
    attempts: Sequence[Attempt],
    checkpoints: Mapping[str, Sequence[Checkpoint]],
) -> int | None:
    """Return the segment that holds step `limit` of the state a segment trained from."""
    return _parent(position, limit, chain, attempts, checkpoints)[0]


def _parent(
    position: int,
    limit: int,
    chain: Sequence[Segment],
    attempts: Sequence[Attempt],
    checkpoints: Mapping[str, Sequence[Checkpoint]],
) -> tuple[int | None, list[Problem]]:
    segment = chain[position]
    problems: list[Problem] = []
    if segment.checkpoint is not None:
        saves = checkpoints.get(segment.checkpoint)
        if saves:
            save = writer(list(saves), segment.time)
            written = _segment_of(save, position, chain, attempts)
            if written is not None:
                return written, problems
        else:
            problems.append(
                Problem(
                    kind="unknown_checkpoint",
                    detail=f"resumed from {segment.checkpoint!r}, which nobody scheduled",
                )
            )
    for earlier in range(position - 1, -1, -1):
        candidate = chain[earlier]
        if candidate.last is not None and candidate.base < limit <= candidate.last:
            return earlier, problems
    if position and segment.completed is not None:
        highest = max((s.last for s in chain[:position] if s.last is not None), default=0)
        if limit > highest > 0:
            problems.append(
                Problem(
                    kind="resume_above_highest",
                    detail=f"resumed at step {limit}, above the highest step {highest}",
                )
            )
    return None, problems


def _segment_of(
    save: Checkpoint, position: int, chain: Sequence[Segment], attempts: Sequence[Attempt]
) -> int | None:
    """Return the segment that wrote a save: of its attempt, the last begun before it."""
    found = None
    for earlier in range(position):
        candidate = chain[earlier]
        if attempts[candidate.attempt].identity != save.attempt:
            continue
        seen = save.scheduled if save.scheduled is not None else save.durable_since
        if found is None or seen is None or candidate.time <= seen:
            found = earlier
    return found
