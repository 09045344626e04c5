"""Which incidents are alike: the groups of a list of them, and those that resemble one.

Works on incidents as a report tells them, each with the run it is of.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Told = Mapping[str, Any]
"""One incident of a report."""
BUCKETS = 24
"""Equal parts of the time that the list spans, in which the incidents of a group are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Incidents of one cause and signature; times in UTC ns, `lost` in ns and GPU-ns.

    `trend` counts them in equal parts of the time that all groups of the list span.
    """

    group: str
    cause: str
    signature: str | None
    incidents: int
    open: int
    runs: int
    first: int
    last: int
    lost_ns: int
    lost_gpu_ns: int
    nodes: tuple[str, ...]
    newest: str
    trend: tuple[int, ...]


def group_of(one: Told) -> str:
    """Return the identity of the group that an incident is in."""
    words = f"{one['cause']}\n{one['signature'] or ''}"
    return hashlib.sha256(words.encode()).hexdigest()[:12]


def groups(incidents: Iterable[Told]) -> list[Group]:
    """Return the groups of some incidents, the one that an incident was last in first."""
    found: dict[str, list[Told]] = defaultdict(list)
    for one in incidents:
        found[group_of(one)].append(one)
    opened = [one["opened"] for members in found.values() for one in members]
    span = (min(opened, default=0), max(opened, default=0))
    made = [_group(name, members, span) for name, members in found.items()]
    return sorted(made, key=lambda group: (-group.last, group.group))


def _group(name: str, members: Sequence[Told], span: tuple[int, int]) -> Group:
    newest = max(members, key=lambda one: (one["opened"], one["incident"]))
    nodes = Counter(one["suspect_node"] for one in members if one["suspect_node"] is not None)
    first, last = span
    part = (last - first) // BUCKETS + 1
    trend = Counter((one["opened"] - first) // part for one in members)
    return Group(
        group=name,
        cause=newest["cause"],
        signature=newest["signature"],
        incidents=len(members),
        open=sum(one["state"] == "open" for one in members),
        runs=len({one["run"] for one in members}),
        first=min(one["opened"] for one in members),
        last=newest["opened"],
        lost_ns=sum(one["lost_ns"] for one in members),
        lost_gpu_ns=sum(one["lost_gpu_ns"] for one in members),
        nodes=tuple(node for node, _ in nodes.most_common()),
        newest=newest["incident"],
        trend=tuple(trend[bucket] for bucket in range(BUCKETS)),
    )


def shared(one: Told, other: Told) -> list[str]:
    """Return what two incidents have in common that may matter: signature, GPU, node."""
    found = []
    if one["signature"] is not None and group_of(one) == group_of(other):
        found.append("signature")
    if one["suspect_gpu"] is not None and (one["suspect_gpu"], one["suspect_node"]) == (
        other["suspect_gpu"],
        other["suspect_node"],
    ):
        found.append("GPU")
    if one["suspect_node"] is not None and one["suspect_node"] == other["suspect_node"]:
        found.append("node")
    if found and one["cause"] == other["cause"] and "signature" not in found:
        found.append("cause")
    return found


def similar(one: Told, others: Iterable[Told]) -> list[tuple[Told, list[str]]]:
    """Return the incidents that have something in common with one: most first, then the newest."""
    found = [
        (other, common)
        for other in others
        if other["incident"] != one["incident"] and (common := shared(one, other))
    ]
    return sorted(found, key=lambda pair: (-len(pair[1]), -pair[0]["opened"], pair[0]["incident"]))
