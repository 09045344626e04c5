"""Which events of nodes belong into which ledgers: those of the nodes that a run has ranks on.

An event of a node names no run. It reaches every run that had ranks there by then or up to a day
before, whichever of the two was stored first; so that the order of arrival does not matter. Each
addition costs what is new, a run's first rank on a node what the node told before.
"""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from headway.blocks import Block, Part
from headway.events import Envelope, NodeMemory
from headway.ledger.intake import DAY, SAMPLES, is_of_node, occurred


@dataclass(slots=True)
class _Node:
    """The events of one node by time, and up to when each run there has been given them (ns).

    `rare` are those without what it told of its memory.
    """

    events: list[Envelope] = field(default_factory=list)
    rare: list[Envelope] = field(default_factory=list)
    given: dict[str, int] = field(default_factory=dict)


class NodeFeed:
    """Gives runs the events of their nodes; takes stored events in any order."""

    def __init__(self) -> None:
        self.num_events = 0
        """Events of nodes so far, samples included."""
        self._nodes: dict[str, _Node] = defaultdict(_Node)

    def add(self, parts: Iterable[Part]) -> dict[str, list[Envelope]]:
        """Take stored events; return by run what it is to be given now."""
        found: dict[str, list[Envelope]] = defaultdict(list)
        reached: dict[tuple[str, str], int] = {}
        for envelope in self._telling(parts, reached):
            if envelope.node is None:
                continue
            if is_of_node(envelope):
                self.num_events += 1
                if not isinstance(envelope.event, SAMPLES):
                    self._take(envelope.node, envelope, found)
            elif envelope.run is not None and envelope.rank is not None:
                key = (envelope.node, envelope.run)
                reached[key] = max(reached.get(key, 0), occurred(envelope) + DAY)
        for (name, run), until in reached.items():
            node = self._nodes[name]
            given = node.given.get(run)
            if given is None or until > given:
                low = 0 if given is None else bisect_right(node.events, given, key=occurred)
                high = bisect_right(node.events, until, key=occurred)
                found[run] += node.events[low:high]
                node.given[run] = until
        return found

    def rare(self, node: str) -> Sequence[Envelope]:
        """Return the events of a node in order of time, but for what it told of its memory."""
        known = self._nodes.get(node)
        return () if known is None else tuple(known.rare)

    def of_run(self, run: str) -> list[Envelope]:
        """Return all that a run was given so far."""
        return [
            envelope
            for node in self._nodes.values()
            if (given := node.given.get(run)) is not None
            for envelope in node.events[: bisect_right(node.events, given, key=occurred)]
        ]

    def num_rare(self, node: str) -> int:
        """Return how many events `rare` has."""
        known = self._nodes.get(node)
        return 0 if known is None else len(known.rare)

    def nodes(self) -> list[str]:
        """Return the nodes of which anything is known."""
        return sorted(self._nodes)

    def _take(self, name: str, envelope: Envelope, found: dict[str, list[Envelope]]) -> None:
        node = self._nodes[name]
        insort(node.events, envelope, key=occurred)
        if not isinstance(envelope.event, NodeMemory):
            insort(node.rare, envelope, key=occurred)
        for run, until in node.given.items():
            if occurred(envelope) <= until:
                found[run].append(envelope)

    def _telling(
        self, parts: Iterable[Part], reached: dict[tuple[str, str], int]
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
                    key = (node, run)
                    reached[key] = max(reached.get(key, 0), part.latest + DAY)
            elif part.rank is None and issubclass(part.kind, SAMPLES):
                self.num_events += part.count
            else:
                yield from part.envelopes()
