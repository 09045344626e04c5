"""The machines of a fleet in a window: failures by node and day, GPU faults, and GPU state.

What nobody told is unknown here, never healthy.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headway.fleet.histories import FaultSeen, NodeHistory, worst_first
from headway.fleet.spans import DAY, Span, cells
from headway.gpu_faults.table import XIDS
from headway.incidents.losses import united

ACTIONS: Mapping[str, str] = {
    "replace": "Take the GPU out of service and have the board inspected or replaced.",
    "reboot": "Drain the node and reboot it.",
    "reset": "Reset the GPU before the next run uses it.",
    "application": "Look at the program; at the GPU only if the fault comes back on it.",
    "watch": "Nothing now; watch whether it comes back.",
    "consequence": "Nothing: it follows from another fault. Look for that one.",
}
"""What each class of fault asks for, the most severe first."""
STATES = ("unhealthy", "disabled", "unknown", "healthy")
"""States of a node's GPUs, the worst first: `disabled` is that nothing can be seen there."""
_GPU_CHECK, _KERNEL_CHECK = "gpu", "kernel_log"


@dataclass(slots=True)
class _Row:
    """One kind of fault over all nodes."""

    seen: FaultSeen
    records: int = 0
    times: list[int] = field(default_factory=list)
    gpus: set[tuple[str, str | None]] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)


def heatmap(known: Sequence[NodeHistory], span: Span, most: int) -> dict[str, Any]:
    """Return failures by node and UTC day for the `most` nodes that surely fail most.

    A cell is None where no run was on the node that day and nothing failed: nobody looked.
    """
    days = cells(span, DAY)
    shown = worst_first(one for one in known if _was_seen(one, span))
    return {
        "days": days,
        "nodes": [{"node": one.node, "failures": _by_day(one, days)} for one in shown[:most]],
        "left_out": max(len(shown) - most, 0),
    }


def faults(known: Iterable[NodeHistory], span: Span) -> list[dict[str, Any]]:
    """Return the kinds of GPU faults in a window, the most severe class first.

    Each with its meaning, its class and the policy that chose it, and what the class asks for.
    `faults` counts what follows within five minutes on one GPU once, `records` every line.
    """
    rows: dict[tuple[str, str, str], _Row] = {}
    for node in known:
        for seen in node.faults:
            told = [(time, lines) for time, lines in seen.told if span.holds(time)]
            if not told:
                continue
            key = (seen.name, seen.classification, seen.policy)
            row = rows.setdefault(key, _Row(seen))
            row.records += sum(lines for _, lines in told)
            row.times += united(time for time, _ in told)
            row.gpus.add((node.node, seen.gpu))
            row.nodes.add(node.node)
    order = {name: place for place, name in enumerate(ACTIONS)}
    found = [_fault(row) for row in rows.values()]
    return sorted(
        found, key=lambda one: (order[one["classification"]], -one["faults"], one["fault"])
    )


def gpu_states(known: Iterable[NodeHistory]) -> list[dict[str, Any]]:
    """Return the state of the GPUs of each node as it told it last, the worst first."""
    found = [_state(one) for one in known]
    return sorted(found, key=lambda one: (STATES.index(one["state"]), one["node"]))


def signs(one: NodeHistory) -> Iterator[int]:
    """Yield the times (UTC ns) at which something is known of a node."""
    for stretch in one.presence:
        yield from stretch
    yield from one.failure_times
    for seen in one.faults:
        yield from (time for time, _ in seen.told)
    for check in one.checks:
        yield check.told


def _was_seen(one: NodeHistory, span: Span) -> bool:
    return any(span.meets(start, end) for start, end in one.presence) or any(
        map(span.holds, one.failure_times)
    )


def _by_day(one: NodeHistory, days: Sequence[int]) -> list[int | None]:
    there = {
        day
        for start, end in one.presence
        for day in range(start // DAY * DAY, max(end, start + 1), DAY)
    }
    failures = Counter(time // DAY * DAY for time in one.failure_times)
    return [failures[day] if day in there or day in failures else None for day in days]


def _fault(row: _Row) -> dict[str, Any]:
    seen = row.seen
    entry = None if seen.code is None else XIDS.get(seen.code)
    return {
        "fault": seen.name,
        "code": seen.code,
        "meaning": None if entry is None else entry.meaning,
        "note": None if entry is None else entry.note,
        "disputed": entry is not None and entry.disputed,
        "classification": seen.classification,
        "action": ACTIONS[seen.classification],
        "policy": seen.policy,
        "faults": len(row.times),
        "records": row.records,
        "gpus": sum(gpu is not None for _, gpu in row.gpus),
        "nodes": sorted(row.nodes),
        "last": max(row.times),
    }


def _state(one: NodeHistory) -> dict[str, Any]:
    checks = {check.check: check for check in one.checks}
    gpu, log = checks.get(_GPU_CHECK), checks.get(_KERNEL_CHECK)
    return {
        "node": one.node,
        "state": "unknown" if gpu is None else gpu.state,
        "detail": None if gpu is None else gpu.detail,
        "told": None if gpu is None else gpu.told,
        "kernel_log": "unknown" if log is None else log.state,
        "kernel_log_detail": None if log is None else log.detail,
        "failing_checks": [
            check.check
            for check in one.checks
            if check.state == "unhealthy" and check.check != _GPU_CHECK
        ],
        "gpus": len([each for each in one.gpus if each.address is not None]) or None,
        "products": sorted({each.product for each in one.gpus if each.product is not None}),
        "last_failure": one.last_failure,
    }
