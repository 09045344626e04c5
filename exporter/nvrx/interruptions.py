"""Who is to blame for a restart, from the interruption records in the wrapper's store."""

from collections.abc import Sequence, Set
from typing import NamedTuple


class Culprit(NamedTuple):
    """The rank that an interruption accuses, and the kind of fault."""

    rank: int
    kind: str


def culprit(records: Sequence[tuple[int, str]], terminated: Set[int]) -> Culprit | None:
    """Return who is to blame for a restart, from (rank, interruption) in order of arrival.

    A hung rank makes its peers time out and a dead one makes them raise, so that the peers'
    records are there too: a rank that is gone outweighs one that raised, and that one outweighs
    one that was only slow. Example: (0, EXCEPTION), (1, TERMINATED) accuses rank 1.
    """
    gone = ("TERMINATED", "HARD_TIMEOUT", "UNRESPONSIVE")
    kinds = {
        "SOFT_TIMEOUT": "hang",
        "HARD_TIMEOUT": "hang",
        "EXCEPTION": "exception",
        "BASE_EXCEPTION": "exception",
        "MONITOR_PROCESS_EXCEPTION": "unknown",
    }
    if not records:
        return Culprit(min(terminated), "lost_rank") if terminated else None

    def weight(record: tuple[int, str]) -> int:
        rank, interruption = record
        if rank in terminated:
            return 0
        if interruption in gone:
            return 1
        return 3 if interruption == "SOFT_TIMEOUT" else 2

    rank, interruption = min(records, key=weight)  # the first of the heaviest
    return Culprit(rank, kinds.get(interruption, "lost_rank"))
