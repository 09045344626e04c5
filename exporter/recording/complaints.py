"""What went wrong in a recorder, or was wrongly asked of it: counted, and each kind told once."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from headway.events import Misuse
from headway.exporter.recording.plain_values import qualified


class Complaints:
    """Tells each kind of complaint once: to people, and to the spool while there is one."""

    def __init__(self, record: Callable[[Misuse], None]) -> None:
        """Prepare; `record` writes to the spool."""
        self.suppressed_failures = 0
        self._record = record
        self._told: set[str] = set()

    def suppressed(self, failure: Exception) -> None:
        """Count what would have been raised into the training."""
        self.suppressed_failures += 1
        kind = "internal_error"
        if kind in self._told:
            return
        try:
            words = f"{qualified(type(failure))}: {failure}"
        except Exception:  # a stranger's exception may not have words
            words = qualified(type(failure))
        self.misuse(kind, words)

    def misuse(self, kind: str, detail: str) -> None:
        """Report and record a way of use that makes no sense."""
        if kind not in self._told:
            self.report(kind, detail)
            try:
                self._record(Misuse(kind=kind, detail=detail))
            except Exception:  # the boundary that protects the training
                self.suppressed_failures += 1

    def report(self, kind: str, message: str) -> None:
        """Tell people."""
        if kind in self._told:
            return
        self._told.add(kind)
        import logging  # costs more to import than the rest, and most processes report nothing

        try:
            logging.getLogger("headway").warning("headway: %s", message)
        except Exception:  # a handler or filter of the program
            self.suppressed_failures += 1


class Protected(Protocol):
    """Something whose methods must not raise into the training."""

    def suppressed(self, failure: Exception) -> None:
        """Count what a method raised."""


_Self = TypeVar("_Self", bound=Protected)
_Arguments = ParamSpec("_Arguments")


def harmless(
    method: Callable[Concatenate[_Self, _Arguments], None],
) -> Callable[Concatenate[_Self, _Arguments], None]:
    """Protect the training: what a method raises is counted and reported instead."""

    @wraps(method)
    def protected(
        self: _Self, /, *arguments: _Arguments.args, **options: _Arguments.kwargs
    ) -> None:
        try:
            method(self, *arguments, **options)
        except Exception as failure:
            self.suppressed(failure)

    return protected
