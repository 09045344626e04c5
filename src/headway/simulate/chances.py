"""Everything that is left to chance in a simulated run, and the troubles that are planned."""

import numpy as np

from headway.simulate.attempt import Due
from headway.simulate.plan import DAY, Plan
from headway.simulate.telling import Times


class Chances:
    """Draws from one seeded generator; planned strikes are given out in order of time."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._plan = plan
        self._random = np.random.default_rng(seed)
        timed = [(strike.at, strike) for strike in plan.strikes if strike.at is not None]
        self._waiting = sorted(timed, key=lambda item: item[0])
        self._stays = False
        self._rates = np.array([trouble.rate for trouble in plan.troubles], dtype=float)

    def next_trouble(self, now: int, nodes: int) -> Due | None:
        """Return what strikes next; drawn anew for each attempt, since chance has no memory."""
        candidates = []
        per_ns = float(self._rates.sum()) * nodes / (1000 * DAY)
        if per_ns:
            time = now + round(self._random.exponential(1 / per_ns))
            index = self._random.choice(len(self._rates), p=self._rates / self._rates.sum())
            candidates.append(Due(time, self._plan.troubles[int(index)], None, None))
        if self._stays:
            strike = self._waiting[0][1]
            if now + strike.after >= (strike.until or 0):
                self.mend()
        if self._waiting:
            time, strike = self._waiting[0]
            time = now + strike.after if self._stays else time
            trouble = self._plan.trouble(strike.trouble)
            candidates.append(Due(time, trouble, strike.rank, strike))
        return min(candidates, key=lambda due: due.time, default=None)

    def happened(self, due: Due) -> None:
        """Take a planned strike out of those that wait, unless what caused it stays."""
        if due.strike is None:
            return
        if due.strike.until is None:
            self._waiting.pop(0)
        else:
            self._stays = True

    def mend(self) -> None:
        """Let what stayed strike no more."""
        if self._stays:
            self._waiting.pop(0)
            self._stays = False

    def rank(self, world: int) -> int:
        """Draw the rank on which a trouble strikes; rank 0 only where it is alone."""
        return int(self._random.integers(1, world)) if world > 1 else 0

    def happens(self, chance: float) -> bool:
        """Draw whether something of a given chance happens."""
        return bool(self._random.random() < chance)

    def delay(self, usual: int) -> int:
        """Draw the time of one part of a recovery."""
        spread = self._plan.delay_jitter
        if not spread or not usual:
            return usual
        return round(usual * float(self._random.lognormal(-spread * spread / 2, spread)))

    def step_times(self, count: int, nodes: int) -> Times:
        """Draw the times of steps; a smaller group takes longer for the same batch."""
        usual = self._plan.step_time * self._plan.nodes / nodes
        spread = self._plan.jitter
        if not spread:
            return np.full(count, round(usual), dtype=np.int64)
        drawn = self._random.lognormal(-spread * spread / 2, spread, count) * usual
        return np.maximum(drawn.astype(np.int64), 1)
