"""Which run of a fleet has which nodes, and when."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from headway.simulate.plan import HOUR

_SIZES = (1, 2, 2, 4, 4, 4, 6, 8, 12)
_WORN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Nodes of one kind in one place; `share` is its part of the fleet's nodes."""

    name: str
    gpu_type: str
    prefix: str
    share: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The nodes and the time of one run; times in ns, `start` UTC, `worn` nodes break often."""

    cluster: Cluster
    nodes: Sequence[str]
    reserve: Sequence[str]
    worn: frozenset[str]
    start: int
    length: int
    live: bool

    @property
    def all_nodes(self) -> Sequence[str]:
        """Nodes of the run and, after them, those that replace lost ones."""
        return (*self.nodes, *self.reserve)


def place(
    random: Random,
    clusters: Sequence[Cluster],
    now: int,
    *,
    runs: int,
    live: int,
    nodes: int,
    month: int,
) -> list[Placement]:
    """Return where and when each run trains, the oldest first; the last ones are live."""
    names = _names(clusters, nodes)
    everyone = sorted(node for found in names.values() for node in found)
    worn = frozenset(random.sample(everyone, min(_WORN, len(everyone))))
    busy: dict[str, list[tuple[int, int]]] = {node: [] for node in everyone}
    found = []
    for index in range(live):
        cluster = clusters[index % len(clusters)]
        start = now - random.randrange(9, 40) * HOUR
        found.append(_placed(random, cluster, names, busy, worn, start, now, live=True))
    for _ in range(runs - live):
        cluster = random.choices(clusters, [cluster.share for cluster in clusters])[0]
        length = random.randrange(8, 110) * HOUR
        start = now - month + random.randrange(month - length - 3 * HOUR)
        found.append(_placed(random, cluster, names, busy, worn, start, start + length))
    return sorted(found, key=lambda one: (one.live, one.start))


def _names(clusters: Sequence[Cluster], nodes: int) -> dict[str, list[str]]:
    whole = sum(cluster.share for cluster in clusters)
    found: dict[str, list[str]] = {}
    for cluster in clusters:
        size = max(2, nodes * cluster.share // whole)
        found[cluster.name] = [
            f"gpu-{cluster.prefix}-{number:03d}" for number in range(1, size + 1)
        ]
    return found


def _placed(
    random: Random,
    cluster: Cluster,
    names: dict[str, list[str]],
    busy: dict[str, list[tuple[int, int]]],
    worn: frozenset[str],
    start: int,
    end: int,
    live: bool = False,
) -> Placement:
    """Take nodes that are free for that time, the least used ones where too few are."""
    known = names[cluster.name]
    wanted = min(random.choice(_SIZES), len(known) - 1)

    def taken(node: str) -> int:
        return sum(max(0, min(end, last) - max(start, first)) for first, last in busy[node])

    chosen = sorted(sorted(known, key=lambda node: (taken(node), random.random()))[:wanted])
    for node in chosen:
        busy[node].append((start, end))
    return Placement(
        cluster=cluster,
        nodes=chosen,
        reserve=[node for node in known if node not in chosen],
        worn=worn,
        start=start,
        length=end - start,
        live=live,
    )
