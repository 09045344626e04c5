"""What a fault trace comes to: as JSON values, and as lines for a terminal."""

from statistics import fmean, median
from typing import Any

from headway.fleet.infinitehbd import Record, Trace, quantile
from headway.fleet.rates import NS_PER_DAY, rate_of
from headway.wording import count, counted

_SHOWN = 10
"""Nodes that a terminal shows."""


def summary(trace: Trace, servers: int) -> dict[str, Any]:
    """Return what a trace of so many servers comes to, as JSON values; times in days."""
    down, repairs = trace.down(), trace.repairs
    exposure = servers * trace.length
    faults: dict[str, int] = dict.fromkeys(down, 0)
    for fault in trace.faults:
        faults[fault.node] += 1
    return {
        "faults": len(trace.faults),
        "nodes": len(trace.nodes),
        "servers": servers,
        "days": trace.length / NS_PER_DAY,
        "classes": trace.counts(),
        "repair_days": {
            "median": _days(median(repairs) if repairs else None),
            "mean": _days(fmean(repairs) if repairs else None),
            "p95": _days(quantile(repairs, 95)),
            "max": _days(repairs[-1] if repairs else None),
        },
        "down_node_days": _days(sum(down.values())),
        "down_ratio": sum(down.values()) / exposure if exposure else None,
        "zero_length": sum(repair == 0 for repair in repairs),
        "overlapping": trace.overlapping,
        "per_1000_node_days": _rate(len(trace.faults), exposure),
        "nodes_by_faults": [
            {
                "node": node,
                "faults": number,
                "down_days": _days(down[node]),
                "per_1000_node_days": _rate(number, trace.length),
            }
            for node, number in sorted(faults.items(), key=lambda item: (-item[1], item[0]))
        ],
        "unpaired": [_object(record) for record in trace.unpaired],
    }


def _days(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_DAY


def _rate(faults: int, exposure: int) -> dict[str, float | None]:
    rate = rate_of(faults, exposure)
    return {"rate": rate.rate, "low": rate.low, "high": rate.high}


def _object(record: Record) -> dict[str, Any]:
    return {
        "record": record.place,
        "node": record.node,
        "days": record.time / NS_PER_DAY,
        "event_type": record.event,
        "fault_type": " / ".join(record.fault),
    }


def print_summary(found: dict[str, Any]) -> None:
    """Print what `summary` gave."""
    print(f"{counted(found['faults'], 'fault')} on {counted(found['nodes'], 'node')}")
    for level, groups in found["classes"].items():
        print(f"{level}: {groups['LevelTotal']}")
        for group, descriptions in groups.items():
            if group != "LevelTotal":
                print(f"  {descriptions['ClassTotal']:>4}  {group}")
                for description, number in descriptions.items():
                    if description != "ClassTotal":
                        print(f"        {number:>4}  {description}")
    repair = found["repair_days"]
    if found["faults"]:
        print(
            f"time to repair: median {repair['median']:.5f} d, mean {repair['mean']:.5f} d, "
            f"95th percentile {repair['p95']:.5f} d, longest {repair['max']:.5f} d; "
            f"{counted(found['zero_length'], 'fault')} of no length"
        )
    if found["down_ratio"] is not None:
        overlaps = counted(found["overlapping"], "fault")
        during = f"{overlaps} that began during another of the same node"
        once = f"; of {during} the common time counts once" if found["overlapping"] else ""
        print(
            f"down: {found['down_ratio'] * 100:.4f} % of {count(found['servers'])} servers x "
            f"{found['days']:.4f} d ({found['down_node_days']:.4f} node-days"
            f"{once})"
        )
        print(f"rate: {_said(found['per_1000_node_days'])} per 1,000 node-days, 95 % interval")
    if found["nodes_by_faults"] and found["down_ratio"] is not None:
        print("nodes with most faults:")
        for one in found["nodes_by_faults"][:_SHOWN]:
            print(
                f"  {one['node']}  {one['faults']:>3}  {one['down_days']:>9.4f} d down  "
                f"{_said(one['per_1000_node_days'])}"
            )
    for one in found["unpaired"]:
        what = "a start without an end" if one["event_type"] == "fault_start" else "an end alone"
        print(
            f"record {one['record']} is {what} and counted nowhere: {one['node']} "
            f"at {one['days']:.4f} d, {one['fault_type']}"
        )


def _said(rate: dict[str, float]) -> str:
    return f"{rate['rate']:.2f} ({rate['low']:.2f} to {rate['high']:.2f})"
