"""Heartbeats of which a ledger need not hold each: the most numerous records of a long run.

An attempt asks of each rank for its first sign of life, its last one and its last heartbeat; the
run's extent asks whether a day passed without any. What lies between two others that are less than
an hour apart answers none of this.
"""

from collections.abc import Iterable, Sequence

from headway.blocks import Block, Part
from headway.events import Heartbeat

APART = 3600 * 10**9
"""Distance in ns from which on heartbeats that follow each other are both kept."""


def untold(beats: Sequence[tuple[int, int | None]]) -> list[int]:
    """Return the places of the heartbeats that tell nothing beside the others.

    Given are the time in ns and the rank of each, in order of time.
    """
    kept: dict[int | None, int] = {}
    last: dict[int | None, int] = {}
    found = []
    for place, (time, rank) in enumerate(beats):
        before = last.get(rank)
        if before is not None:
            if rank in kept and time - kept[rank] < APART:
                found.append(before)
            else:
                kept[rank] = beats[before][0]
        last[rank] = place
    return found


def thinned(parts: Iterable[Part], until: int) -> list[Part]:
    """Return parts without the heartbeats of blocks that tell nothing about `until`, in UTC ns.

    Later than that nothing may be asked of a block that is cut.
    """
    found: list[Part] = []
    for part in parts:
        if isinstance(part, Block) and _is_cut(part, until):
            found += [part.part(0, 1), part.part(part.count - 1, part.count)]
        else:
            found.append(part)
    return found


def _is_cut(block: Block, until: int) -> bool:
    """Whether a block is a stretch of one rank's heartbeats in one attempt."""
    if block.kind is not Heartbeat or block.count < 3 or block.latest > until:
        return False
    rank, attempt = block.record["rank"], block.record["attempt"]
    alike = rank.values is None and attempt.values is None
    named = rank.constant is not None and attempt.constant is not None
    return alike and named and block.latest - block.earliest < APART
