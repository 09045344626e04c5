"""Restarts that the layers of a simulated run have left."""

from collections.abc import Iterator, Mapping

from headway.events import LAYERS, RestartBudget


class Budgets:
    """Restarts left per layer; a layer without a limit restarts what is its own without end."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = limits
        self._left = dict(limits)

    def take(self, layer: str) -> str | None:
        """Use a restart of a layer, or of an outer one; return whose, None if nobody has any.

        The layers within it begin anew.
        """
        depth = LAYERS.index(layer)
        having = (name for name in reversed(LAYERS[: depth + 1]) if self._left.get(name))
        taken = layer if layer not in self._limits else next(having, None)
        if taken is not None:
            if taken in self._left:
                self._left[taken] -= 1
            inner = LAYERS[LAYERS.index(taken) + 1 :]
            self._left |= {name: self._limits[name] for name in inner if name in self._limits}
        return taken

    def renew(self) -> None:
        """Give every layer its restarts: a person started the run."""
        self._left = dict(self._limits)

    @property
    def last(self) -> int | None:
        """Restarts left to the outermost layer, after which a fault ends the run."""
        return next((self._left[name] for name in LAYERS if name in self._left), None)

    def told(self) -> Iterator[RestartBudget]:
        """Yield what each layer says as it starts."""
        for name, left in self._left.items():
            yield RestartBudget(layer=name, remaining=left, limit=self._limits[name])
