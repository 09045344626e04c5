"""What is odd about a run's losses and paces, told while its lines are read.

A line is odd beside the lines before it: a loss that is no number or half as high again as usual, a
pace that is slower than noise explains, for some lines.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
_RECENT = 20
_SPIKE = 1.5
_SLOW = 1.03
_NOISE = 4
_FEW = 3
_DUE = (3, 8, 20)
_MOST = 1000
"""Stretches that are kept."""


@dataclass(slots=True)
class Odd:
    """A stretch of step lines with something odd about them."""

    kind: str
    first: int
    last: int
    before: float
    worst: float
    lines: int = 1

    def values(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "type": self.kind,
            "first_step": self.first,
            "last_step": self.last,
            "lines": self.lines,
            "before": None if math.isnan(self.before) else self.before,
            "worst": None if math.isnan(self.worst) else self.worst,
        }


@dataclass(slots=True)
class Oddities:
    """Judges each loss and pace by what was usual so far."""

    found: list[Odd] = field(default_factory=list)
    _losses: list[float] = field(default_factory=list)
    _losses_due: int = 3
    _loss_limit: float = math.inf
    _paces: list[float] = field(default_factory=list)
    _paces_due: int = 3
    _pace_limit: float = math.inf
    _usual_pace: float = math.inf
    _slow: Odd | None = None
    _strange: Odd | None = None
    _bad: Odd | None = None

    def losses(self, steps: Sequence[int], losses: Sequence[float]) -> None:
        """Take losses, as many at once as are usual."""
        done = 0
        while done < len(losses):
            done += self._usual_losses(losses[done:])
            some = losses[done : done + self._losses_due - len(self._losses)]
            for step, loss in zip(steps[done:], some, strict=False):
                self.loss(step, loss)
            done += len(some)

    def _usual_losses(self, losses: Sequence[float]) -> int:
        """Take losses of whole stretches by each of which the next is usual; return how many."""
        if self._strange or self._bad or self._losses or self._losses_due != _RECENT:
            return 0
        stretches = _stretches(losses)
        usual = np.median(stretches, axis=1)
        limits = np.where(usual > 0, _SPIKE * usual, math.inf)
        kept = _kept(stretches, self._loss_limit, limits)
        if kept:
            self._loss_limit = float(limits[kept - 1])
        return kept * _RECENT

    def paces(self, steps: Sequence[int], paces: Sequence[float]) -> None:
        """Take seconds per step, as many at once as are usual."""
        done = 0
        while done < len(paces):
            done += self._usual_paces(paces[done:])
            some = paces[done : done + self._paces_due - len(self._paces)]
            for step, pace in zip(steps[done:], some, strict=False):
                self.pace(step, pace)
            done += len(some)

    def _usual_paces(self, paces: Sequence[float]) -> int:
        """Take the paces of whole stretches by each of which the next is usual; return how many."""
        if self._slow is not None or self._paces or self._paces_due != _RECENT:
            return 0
        stretches = _stretches(paces)
        usual, limits = _limits(stretches)
        kept = _kept(stretches, self._pace_limit, limits)
        if kept:
            self._usual_pace, self._pace_limit = float(usual[kept - 1]), float(limits[kept - 1])
        return kept * _RECENT

    def loss(self, step: int, loss: float) -> None:
        """Take the loss that the line of a step prints."""
        if math.isnan(loss) or math.isinf(loss):
            self._bad = self._stretch(self._bad, "nan_loss", step, math.nan, math.nan)
            return
        self._bad = None
        if loss > self._loss_limit:
            usual = self._loss_limit / _SPIKE
            self._strange = self._stretch(self._strange, "loss_spike", step, usual, loss)
            if self._strange.lines >= _FEW:
                self._strange.kind = "loss_jump"
            return
        self._strange = None
        self._losses.append(loss)
        if len(self._losses) >= self._losses_due:
            self._new_loss_limit()

    def _new_loss_limit(self) -> None:
        """Judge what is usual anew: after 3 and 8 lines, then after each 20."""
        usual = median(self._losses)
        self._loss_limit = _SPIKE * usual if usual > 0 else math.inf
        self._losses_due = next((due for due in _DUE if due > self._losses_due), _RECENT)
        if len(self._losses) >= _RECENT:
            self._losses.clear()

    def pace(self, step: int, seconds: float) -> None:
        """Take the seconds per step up to a step."""
        if self._pace_limit < seconds < 2 * self._usual_pace:
            if self._slow is None:
                self._slow = Odd("slow_down", step, step, self._usual_pace, seconds)
            else:
                self._slow.last, self._slow.lines = step, self._slow.lines + 1
                self._slow.worst = max(self._slow.worst, seconds)
                if self._slow.lines == _FEW and len(self.found) < _MOST:
                    self.found.append(self._slow)
            return
        self._slow = None
        self._paces.append(seconds)
        if len(self._paces) >= self._paces_due:
            self._new_pace_limit()

    def _new_pace_limit(self) -> None:
        usual, limit = _limits(np.array([self._paces]))
        self._usual_pace, self._pace_limit = float(usual[0]), float(limit[0])
        self._paces_due = next((due for due in _DUE if due > self._paces_due), _RECENT)
        if len(self._paces) >= _RECENT:
            self._paces.clear()

    def _stretch(self, open_: Odd | None, kind: str, step: int, before: float, value: float) -> Odd:
        if open_ is None:
            open_ = Odd(kind, step, step, before, value)
            if len(self.found) < _MOST:
                self.found.append(open_)
            return open_
        open_.last, open_.lines = step, open_.lines + 1
        open_.worst = max(open_.worst, value)
        return open_


def _stretches(values: Sequence[float]) -> Values:
    """Return the whole stretches of values that are judged together, one a row."""
    return np.array(values[: len(values) // _RECENT * _RECENT]).reshape(-1, _RECENT)


def _kept(stretches: Values, limit: float, limits: Values) -> int:
    """Return how many of the first rows are within the limit that the row before each set."""
    odd = np.flatnonzero(stretches.max(axis=1) > [limit, *limits[:-1]][: len(stretches)])
    return int(odd[0]) if len(odd) else len(stretches)


def _limits(paces: Values) -> tuple[Values, Values]:
    """Return the usual pace of each row of shape (n, k), and the limit of what is still usual."""
    usual = np.median(paces, axis=1)
    noise = np.median(np.abs(paces - usual[:, None]), axis=1)
    return usual, usual * _SLOW + _NOISE * noise
