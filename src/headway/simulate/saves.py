"""The checkpoints of a simulated run: in the background write, on disk, readable or torn."""

from typing import NamedTuple


class Saving(NamedTuple):
    """A checkpoint in the background write; times in ns."""

    step: int
    scheduled: int
    durable: int
    torn: bool


class Saved(NamedTuple):
    """A checkpoint that loaders find; that it is torn shows only when it is read."""

    step: int
    torn: bool


class Saves:
    """Checkpoints of the newest state, oldest first."""

    def __init__(self) -> None:
        self.saving: list[Saving] = []
        self.forgotten: list[Saved] = []
        self._saved: list[Saved] = []

    @property
    def newest(self) -> Saved | None:
        """The checkpoint that a loader tries first."""
        return self._saved[-1] if self._saved else None

    def busy(self, now: int) -> int:
        """Return how long the background writer still needs."""
        return max([0, *(saving.durable - now for saving in self.saving)])

    def settle(self, until: int) -> list[Saving]:
        """Let those become durable that are written by then; return them."""
        done = [saving for saving in self.saving if saving.durable <= until]
        for saving in done:
            self.saving.remove(saving)
            self._saved.append(Saved(saving.step, saving.torn))
        return done

    def forget(self, count: int) -> None:
        """Let the newest not be found, but for the oldest, and nobody say so."""
        self.forgotten = self._saved[max(len(self._saved) - count, 1) :]
        del self._saved[len(self._saved) - len(self.forgotten) :]

    def discard_newest(self) -> None:
        """Forget a checkpoint that could not be read."""
        self._saved.pop()


def name(step: int) -> str:
    """Return the identity of the checkpoint of a step."""
    return f"step-{step}"
