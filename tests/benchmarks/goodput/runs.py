"""Made-up runs about which both sides of the ledger bench are asked; what is productive is known.

One rank trains steps of about 2 s back to back, saves at an interval, evaluates at another, dies,
and resumes from its newest save. Times are UTC ns, steps are counted by how many were completed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SECOND = 10**9
ORIGIN = 1_704_067_200 * SECOND
SAVE = SECOND // 2
EVALUATION = 10 * SECOND
DOWN = 60 * SECOND
START_UP = 20 * SECOND
LOAD = 10 * SECOND
DATA = 2 * SECOND
BROKEN = SECOND
"""How long the step had run in which an attempt died."""

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The size of a run."""

    name: str
    steps: int
    restarts: int
    save_interval: int
    lost: int
    evaluation_interval: int | None = None


CASES = {
    case.name: case
    for case in (
        Case(name="1m_steps", steps=1_000_000, restarts=20, save_interval=1000, lost=500),
        Case(name="1000_restarts", steps=100_000, restarts=1000, save_interval=99, lost=10),
        Case(
            name="3000_evaluations",
            steps=300_000,
            restarts=10,
            save_interval=1000,
            lost=500,
            evaluation_interval=100,
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAttempt:
    """One attempt: shape (n,) columns for its n completed steps; the last attempt has no end."""

    number: int
    start: int
    loaded: int
    completed_before: int
    starts: Times
    durations: Times
    saves: list[tuple[int, int]]
    """Step and begin of each save, which takes `SAVE`."""
    evaluations: list[tuple[int, int]]
    """Step and begin of each evaluation, which takes `EVALUATION`."""
    busy_until: int
    """End of the last completed step and of the save and evaluation after it."""
    end: int | None
    kept: int
    """How many of its steps survive."""

    @property
    def steps_began(self) -> int:
        """When the first step could begin."""
        return int(self.starts[0])


def attempts(case: Case) -> Iterator[TrainingAttempt]:
    """Yield the attempts of a run in order."""
    chance = np.random.default_rng(case.steps)
    kept = case.steps // (case.restarts + 1) // case.save_interval * case.save_interval
    now, completed = ORIGIN, 0
    for number in range(case.restarts + 1):
        last = number == case.restarts
        count = case.steps - completed if last else kept + case.lost
        durations = 2 * SECOND + chance.integers(-SECOND // 20, SECOND // 20, count)
        numbers = completed + np.arange(1, count + 1)
        saved = numbers % case.save_interval == 0
        evaluated = np.zeros(count, dtype=bool)
        if case.evaluation_interval is not None:
            evaluated = numbers % case.evaluation_interval == 0
        after = saved * SAVE + evaluated * EVALUATION
        loaded = now + START_UP + LOAD
        ends = loaded + DATA + np.cumsum(durations) + np.cumsum(after) - after
        busy_until = int(ends[-1] + after[-1])
        attempt = TrainingAttempt(
            number=number,
            start=now,
            loaded=loaded,
            completed_before=completed,
            starts=ends - durations,
            durations=durations,
            saves=_stretches(numbers, ends, saved),
            evaluations=_stretches(numbers, ends + saved * SAVE, evaluated),
            busy_until=busy_until,
            end=None if last else busy_until + BROKEN,
            kept=count if last else kept,
        )
        yield attempt
        now = (attempt.end or 0) + DOWN
        completed += kept


def productive(run: list[TrainingAttempt]) -> int:
    """Return the time in ns of the steps that survive."""
    return sum(int(attempt.durations[: attempt.kept].sum()) for attempt in run)


def _stretches(
    numbers: Times, begins: Times, chosen: npt.NDArray[np.bool_]
) -> list[tuple[int, int]]:
    return list(zip(numbers[chosen].tolist(), begins[chosen].tolist(), strict=True))
