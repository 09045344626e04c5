"""Records on their way to lines: what several told alike within seconds is one line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headway.postmortem.model import Line
from headway.postmortem.numbering import ranks_in_words
from headway.wording import count

ALIKE = 5 * 10**9
"""Records that say the same and follow each other within this, in ns, are one line."""
_FEW = 4
"""Faults and ends that say the same and are told apart nevertheless."""
_NODES_NAMED = 3


class Key(NamedTuple):
    """What lines have in common that are one."""

    source: str
    words: str
    attempt: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One record on its way to a line; of a few `telling` ones each has a line of its own."""

    time: int
    key: Key
    rank: int | None = None
    node: str | None = None
    record: str | None = None
    until: int | None = None
    telling: bool = False
    evidence: bool = False
    echo: bool = False
    first_fault: bool = False
    decides: bool = False


def united(seen: Sequence[Seen]) -> Iterator[Line]:
    """Make one line of what is alike; what is marked stays apart."""
    open_: dict[Key, list[Seen]] = {}
    for item in sorted(seen, key=lambda item: item.time):
        alike = open_.get(item.key)
        if item.first_fault or item.decides:
            yield _line([item])
        elif alike is not None and item.time - alike[-1].time <= ALIKE:
            alike.append(item)
        else:
            if alike is not None:
                yield from _lines(alike)
            open_[item.key] = [item]
    for alike in open_.values():
        yield from _lines(alike)


def _lines(alike: Sequence[Seen]) -> Iterator[Line]:
    if alike[0].telling and len(alike) <= _FEW:
        yield from (_line([item]) for item in alike)
    else:
        yield _line(alike)


def _line(alike: Sequence[Seen]) -> Line:
    first = alike[0]
    ends = [item.time if item.until is None else item.until for item in alike]
    return Line(
        time=first.time,
        until=max(ends) if max(ends) > first.time else None,
        source=first.key.source,
        words=first.key.words,
        about=_about(alike),
        record=first.record,
        count=len(alike),
        spans=first.until is not None,
        evidence=any(item.evidence for item in alike),
        echo=any(item.echo for item in alike),
        first_fault=first.first_fault,
        decides=first.decides,
    )


def _about(alike: Sequence[Seen]) -> str | None:
    ranks = sorted({item.rank for item in alike if item.rank is not None})
    nodes = sorted({item.node for item in alike if item.node is not None})
    more = len(nodes) - _NODES_NAMED
    on = ", ".join(nodes[:_NODES_NAMED]) + (f" and {count(more)} more" if more > 0 else "")
    who = ranks_in_words(ranks)
    return " on ".join(part for part in (who, on) if part) or None
