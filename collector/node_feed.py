"""Which events of nodes belong into which ledgers: those of the nodes that a run has ranks on.

An event of a node names no run. It reaches every run that had ranks there by then or up to a day
before, whichever of the two was stored first; so that the order of arrival does not matter. Each
addition costs what is new, a run's first rank on a node what the node told before. What a node
tells of its memory is much, and matters to a run only while that is there: the newest is kept here,
the rest is in the store.
"""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headway.blocks import Block, Part
from headway.events import Envelope, NodeMemory
from headway.ledger.intake import DAY, SAMPLES, is_of_node, occurred

_BEFORE = 3600 * 10**9
"""How long before a run's first sign on a node, in ns, the node's memory may matter to it."""
MOST_READINGS = 200
"""Readings of its memory that are kept of a node: of half a day at least, while little changes."""


class Stay(NamedTuple):
    """From when to when what a node tells of its memory is given to a run, in ns, ends included.

    What it tells of other things is given to the run from the beginning.
    """

    since: int
    until: int


class Given(NamedTuple):
    """What runs are to be given; those `lacking` have to be read again from the store."""

    by_run: Mapping[str, Sequence[Envelope]]
    lacking: frozenset[str]


@dataclass(slots=True)
class _Node:
    """The events of one node by time, `readings` those of its memory; who was there, and when.

    Readings of a time up to `forgotten`, in ns, may be in the store alone.
    """

    rare: list[Envelope] = field(default_factory=list)
    readings: list[Envelope] = field(default_factory=list)
    forgotten: int | None = None
    stays: dict[str, Stay] = field(default_factory=dict)


class NodeFeed:
    """Gives runs the events of their nodes; takes stored events in any order."""

    def __init__(self, most_readings: int | None = None) -> None:
        """Start empty; without a number all readings are kept."""
        self.num_events = 0
        """Events of nodes so far, samples included."""
        self._most_readings = most_readings
        self._nodes: dict[str, _Node] = defaultdict(_Node)

    def add(self, parts: Iterable[Part]) -> Given:
        """Take stored events; return by run what it is to be given now."""
        found: dict[str, list[Envelope]] = defaultdict(list)
        reached: dict[tuple[str, str], Stay] = {}
        for envelope in self._telling(parts, reached):
            if envelope.node is None:
                continue
            if is_of_node(envelope):
                self.num_events += 1
                if not isinstance(envelope.event, SAMPLES):
                    self._take(self._nodes[envelope.node], envelope, found)
            elif envelope.run is not None and envelope.rank is not None:
                time = occurred(envelope)
                _reach(reached, (envelope.node, envelope.run), time, time)
        lacking = set()
        for (name, run), stay in reached.items():
            node = self._nodes[name]
            before = node.stays.get(run)
            if before is not None:
                stay = Stay(min(stay.since, before.since), max(stay.until, before.until))
            if stay == before:
                continue
            node.stays[run] = stay
            known = None if before is None else before.until
            found[run] += _between(node.rare, known, stay.until)
            for begin, end in _added(before, stay):
                found[run] += _between(node.readings, begin - 1, end)
                if node.forgotten is not None and begin <= node.forgotten:
                    lacking.add(run)
        return Given(found, frozenset(lacking))

    def rare(self, node: str) -> Sequence[Envelope]:
        """Return the events of a node in order of time, but for what it told of its memory."""
        known = self._nodes.get(node)
        return () if known is None else tuple(known.rare)

    def of_run(self, run: str) -> list[Envelope]:
        """Return all that a run was given so far, but for what nodes told of their memory."""
        return [
            envelope
            for node in self._nodes.values()
            if (stay := node.stays.get(run)) is not None
            for envelope in _between(node.rare, None, stay.until)
        ]

    def stays(self, run: str) -> dict[str, Stay]:
        """Return by node when a run was there."""
        return {
            name: stay
            for name, node in self._nodes.items()
            if (stay := node.stays.get(run)) is not None
        }

    def num_rare(self, node: str) -> int:
        """Return how many events `rare` has."""
        known = self._nodes.get(node)
        return 0 if known is None else len(known.rare)

    def nodes(self) -> list[str]:
        """Return the nodes of which anything is known."""
        return sorted(self._nodes)

    def _take(self, node: _Node, envelope: Envelope, found: dict[str, list[Envelope]]) -> None:
        time = occurred(envelope)
        is_reading = isinstance(envelope.event, NodeMemory)
        insort(node.readings if is_reading else node.rare, envelope, key=occurred)
        for run, stay in node.stays.items():
            if time <= stay.until and (not is_reading or stay.since <= time):
                found[run].append(envelope)
        most = self._most_readings
        if most is not None and len(node.readings) >= 2 * most:
            gone = len(node.readings) - most
            node.forgotten = occurred(node.readings[gone - 1])
            del node.readings[:gone]

    def _telling(
        self, parts: Iterable[Part], reached: dict[tuple[str, str], Stay]
    ) -> Iterator[Envelope]:
        """Yield what has to be looked at one by one; of other blocks note what they reached."""
        for part in parts:
            if not isinstance(part, Block):
                yield part
                continue
            node, run = part.producer["node"], part.producer["run"]
            if node is None:
                continue
            if run is not None:
                if part.rank is not None:
                    _reach(reached, (node, run), part.earliest, part.latest)
            elif part.rank is None and issubclass(part.kind, SAMPLES):
                self.num_events += part.count
            else:
                yield from part.envelopes()


def _reach(
    reached: dict[tuple[str, str], Stay], key: tuple[str, str], earliest: int, latest: int
) -> None:
    """Note that a run showed on a node between two times in ns."""
    stay = Stay(earliest - _BEFORE, latest + DAY)
    known = reached.get(key, stay)
    reached[key] = Stay(min(stay.since, known.since), max(stay.until, known.until))


def _added(before: Stay | None, now: Stay) -> Iterator[tuple[int, int]]:
    """Yield by what a stay has become longer, ends included."""
    if before is None:
        yield now
        return
    if now.since < before.since:
        yield now.since, before.since - 1
    if now.until > before.until:
        yield before.until + 1, now.until


def _between(events: Sequence[Envelope], after: int | None, until: int) -> Sequence[Envelope]:
    """Return the events after a time and up to another, in ns."""
    low = 0 if after is None else bisect_right(events, after, key=occurred)
    return events[low : bisect_right(events, until, key=occurred)]
