"""Who is to blame for a restart, from the interruption records in the wrapper's store.

The records are no public interface of NVRx: reading them may fail, and is then left out.
"""

from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

_HANGS = ("SOFT_TIMEOUT", "HARD_TIMEOUT", "UNRESPONSIVE")


class Culprit(NamedTuple):
    """The rank that an interruption accuses, and the kind of fault."""

    rank: int
    kind: str


def culprit(records: Sequence[tuple[int, str]], terminated: Set[int]) -> Culprit | None:
    """Return who is to blame for a restart, from (rank, interruption) in order of arrival.

    A hung rank makes its peers time out and a dead one makes them raise, so that the peers'
    records are there too: a rank that is gone outweighs one that raised, and that one outweighs
    one that was only slow. Example: (0, EXCEPTION), (1, TERMINATED) accuses rank 1. The records
    are closed soon after the first, and so may lack the one of a rank that is gone: where its
    peers only timed out, it hung before.
    """
    gone = ("TERMINATED", "HARD_TIMEOUT", "UNRESPONSIVE")
    kinds = {
        "SOFT_TIMEOUT": "hang",
        "HARD_TIMEOUT": "hang",
        "EXCEPTION": "exception",
        "BASE_EXCEPTION": "exception",
        "MONITOR_PROCESS_EXCEPTION": "unknown",
    }
    if terminated and terminated.isdisjoint(rank for rank, _ in records):
        hung = bool(records) and all(kinds.get(kind) == "hang" for _, kind in records)
        return Culprit(min(terminated), "hang" if hung else "lost_rank")
    if not records:
        return None

    def weight(record: tuple[int, str]) -> int:
        rank, interruption = record
        if rank in terminated:
            return 0
        if interruption in gone:
            return 1
        return 3 if interruption == "SOFT_TIMEOUT" else 2

    rank, interruption = min(records, key=weight)  # the first of the heaviest
    return Culprit(rank, kinds.get(interruption, "lost_rank"))


class Interruptions:
    """Reads what the ranks told the wrapper's store about an iteration that broke."""

    def __init__(self, unknown: Callable[[Exception], None]) -> None:
        """Prepare; `unknown` is told why records cannot be read."""
        self._unknown = unknown
        self._call_wrapper: Any = None

    def begin(self, call_wrapper: Any) -> None:
        """Take the wrapper of the attempt that begins."""
        self._call_wrapper = call_wrapper

    def read(
        self, store: Any, terminated: Set[int]
    ) -> tuple[list[tuple[int, str]], dict[int, int]] | None:
        """Return (rank, interruption) in order of arrival, and the first rank of each accused.

        Ranks are those of the iteration, which shift when one is lost; the first rank of one is
        what it was called when the process began, as in its records. None if that cannot be had.
        """
        try:
            records = _records(store)
            accused = {rank for rank, _ in records} | set(terminated)
            return records, {rank: _initial_rank(store, rank) for rank in sorted(accused)}
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            self._unknown(error)
            return None

    def is_hang(self, iteration: int) -> bool:
        """Whether somebody was too slow or did not answer; true if that cannot be known."""
        store = self._store(iteration)
        try:
            kinds = {kind for _, kind in _records(store)}
        except (AttributeError, TypeError, ValueError, RuntimeError):
            return True
        return not kinds or not kinds.isdisjoint(_HANGS)

    def is_any(self) -> bool:
        """Whether any rank was interrupted in this iteration, as far as can be known."""
        try:
            from nvidia_resiliency_ext.inprocess.store import (  # type: ignore[import-untyped]
                StoreMixin,
            )

            store = self._store(self._call_wrapper.iteration)
            return bool(store.check([StoreMixin.ANY_RANK_INTERRUPTED]))
        except (ImportError, AttributeError, RuntimeError):  # or rank 0 is gone
            return False

    def _store(self, iteration: int) -> Any:
        try:
            from nvidia_resiliency_ext.inprocess.store import PrefixStore

            return PrefixStore(iteration, self._call_wrapper.base_store)
        except (ImportError, AttributeError, TypeError, RuntimeError):
            return None


def _records(store: Any) -> list[tuple[int, str]]:
    return [(record.rank, record.interruption.name) for record in store.get_interruption_records()]


def _initial_rank(store: Any, rank: int) -> int:
    """Return the first rank of one; its own where it was lost before it told."""
    key = store.INITIAL_RANK.format(rank=rank)
    return int(store.get(key)) if store.check([key]) else rank
