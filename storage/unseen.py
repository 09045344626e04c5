"""What of received records is not stored yet: overlaps trimmed, gaps left open until filled."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from headway import wire
from headway.blocks import Block, Part, num_records, source
from headway.sequences import SequenceSet, Source


@dataclass(slots=True)
class Unseen:
    """The parts to be stored, their records, and the numbers known of their sources with them."""

    parts: list[Part] = field(default_factory=list)
    num_records: int = 0
    num_received: int = 0
    known: dict[Source, SequenceSet] = field(default_factory=dict)


def unseen(received: Iterable[Part], stored: Mapping[Source, SequenceSet]) -> Unseen:
    """Return what of received parts is not stored, each record once; `stored` stays as it is."""
    found = Unseen()
    for part in received:
        of = source(part)
        known = found.known.get(of)
        if known is None:
            # A copy: where the transaction fails, the set of what is stored must not change.
            known = found.known[of] = SequenceSet(stored.get(of, ()))
        found.num_received += num_records(part)
        for new in _missing(part, known):
            found.parts.append(new)
            found.num_records += num_records(new)
    return found


def _missing(part: Part, known: SequenceSet) -> Iterator[Part]:
    """Yield what of a part is not known, and know it from then on."""
    if not isinstance(part, Block):
        for first, last in known.missing(part.first_sequence, part.last_sequence):
            known.add(first, last)
            yield wire.trim(part, first, last)
        return
    for begin, end, start in stretches(part):
        for first, last in known.missing(start, start + end - begin - 1):
            known.add(first, last)
            yield part.part(begin + first - start, begin + last - start + 1)


def stretches(block: Block) -> Iterator[tuple[int, int, int]]:
    """Yield begin and end of records whose numbers follow each other, and their first number."""
    numbers = np.array(block.record["first_sequence"].of(block.count), np.int64)
    breaks = (np.flatnonzero(np.diff(numbers) != 1) + 1).tolist()
    for begin, end in pairwise([0, *breaks, block.count]):
        yield begin, end, int(numbers[begin])
