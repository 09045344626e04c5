"""Rows and sentences about nodes, GPUs and their faults. Pure functions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

from headway.dashboard import markup
from headway.dashboard.fleet_rows import rate
from headway.dashboard.markup import Cell, Markup
from headway.wording import UNKNOWN, count, counted, gpu_hours, plain, when

FAULT_COLUMNS = (
    "Fault",
    "Meaning",
    "Asks for",
    "What to do",
    "#Faults",
    "#Log lines",
    "#GPUs",
    "Nodes",
    "Last",
)
STATE_COLUMNS = (
    "Node",
    "Its GPUs",
    "#Number",
    "Product",
    "In its words",
    "Kernel log",
    "Other failing checks",
    "Told",
    "Last failure",
)
GPU_COLUMNS = (
    "GPU",
    "Address",
    "Product",
    "#Faults",
    "What it had",
    "#Incidents",
    "#GPU time lost",
    "Last fault",
    "What its past says",
)
HEALTH_COLUMNS = ("What changed", "GPU", "Before the run", "After it", "Run")
_NODES_NAMED = 3
_STATE_WORDS: Mapping[str, str] = {
    "healthy": "healthy",
    "unhealthy": "unhealthy",
    "disabled": "cannot be seen",
    "unknown": "unknown: nobody told",
}
_LOG_WORDS: Mapping[str, str] = {
    "healthy": "read",
    "unhealthy": "trouble",
    "disabled": "cannot be read",
    "unknown": "unknown: nobody told",
}


def headline(found: Mapping[str, Any], nodes: Mapping[str, Any]) -> str:
    """Return the machines in two sentences: which fail, and of which nobody tells."""
    failures = nodes["fleet"]["failures"]
    text = (
        f"{counted(found['nodes'], 'node')}, {counted(failures, 'failure')} while runs were there"
    )
    if nodes["repeats"]:
        text += (
            f"; {counted(nodes['repeats'], 'node')} failed more than once, "
            f"{nodes['nodes'][0]['node']} surely the most often"
        )
    unseen = states(found)["disabled"] + states(found)["unknown"]
    return f"{text}." + (
        f" Nothing tells how the GPUs of {counted(unseen, 'node')} are." if unseen else ""
    )


def states(found: Mapping[str, Any]) -> Counter[str]:
    """Return how many nodes are in which state."""
    return Counter(one["state"] for one in found["gpu_states"])


def fault_row(one: Mapping[str, Any], zone: tzinfo) -> Sequence[Cell]:
    """Return one kind of GPU fault with what it means and what to do about it."""
    meaning = one["meaning"] or "Not in the table of known faults"
    named = [_node_link(node).html for node in one["nodes"][:_NODES_NAMED]]
    more = len(one["nodes"]) - len(named)
    return (
        one["fault"],
        markup.two_lines(meaning, one["note"] or ""),
        markup.two_lines(
            one["classification"], one["policy"] + (", disputed" if one["disputed"] else "")
        ),
        one["action"],
        count(one["faults"]),
        count(one["records"]),
        count(one["gpus"]),
        Markup(html=", ".join(named) + (f" and {more} more" if more else "")),
        when(one["last"], zone),
    )


def state_row(one: Mapping[str, Any], zone: tzinfo) -> Sequence[Cell]:
    """Return what a node told last of its GPUs; what it did not tell is unknown."""
    log = _LOG_WORDS[one["kernel_log"]]
    return (
        _node_link(one["node"]),
        _STATE_WORDS[one["state"]],
        count(one["gpus"]),
        ", ".join(one["products"]) or UNKNOWN,
        one["detail"] or "",
        log + (f": {one['kernel_log_detail']}" if one["kernel_log"] == "disabled" else ""),
        ", ".join(one["failing_checks"]) or "none",
        "never" if one["told"] is None else when(one["told"], zone),
        "never" if one["last_failure"] is None else when(one["last_failure"], zone),
    )


def node_sentence(one: Mapping[str, Any]) -> str:
    """Return one node: how often it failed, at which rate, and what that cost."""
    found = one["per_1000_node_days"]
    again = ", a repeat offender" if one["repeats"] else ""
    return (
        f"{one['node']}: {counted(one['failures'], 'failure')}{again}, {rate(found)} per 1,000 "
        f"node-days over {found['node_days']:,.1f} node-days with a run; "
        f"{counted(len(one['incidents']), 'incident')} blamed on it, "
        f"{gpu_hours(one['gpu_ns'])} lost."
    )


def gpu_row(one: Mapping[str, Any], zone: tzinfo) -> Sequence[Cell]:
    """Return one GPU of a node."""
    return (
        one["device"],
        one["pci_address"] or UNKNOWN,
        one["product"] or UNKNOWN,
        count(one["faults"]),
        ", ".join(one["names"]) or "nothing",
        count(len(one["incidents"])),
        gpu_hours(one["gpu_ns"]),
        "never" if one["last_fault"] is None else when(one["last_fault"], zone),
        "; ".join(one["advice"]),
    )


def health_rows(one: Mapping[str, Any]) -> list[Sequence[Cell]]:
    """Return what changed in a node's health over each of its runs."""
    return [
        (
            plain(change["what"]),
            change["device"] or "",
            _value(change["before"]),
            _value(change["after"]),
            markup.run_link(stay["run"], stay["run_name"]),
        )
        for stay in one["stays"]
        for change in stay["health"]
    ]


def _node_link(node: str) -> Markup:
    return markup.link(markup.address("hardware", node=node), node)


def _value(value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    return ", ".join(map(str, value)) or "nothing" if isinstance(value, list) else str(value)
