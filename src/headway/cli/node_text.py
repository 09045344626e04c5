"""Nodes and their GPUs as tables for a terminal."""

from collections.abc import Mapping
from typing import IO, Any

from rich.table import Table

from headway import wording
from headway.cli.tables import console_for, print_whole, table_of
from headway.fleet.rates import NS_PER_DAY


def print_nodes(found: Mapping[str, Any], file: IO[str] | None = None) -> None:
    """Print one line per node and the rate of the whole fleet."""
    console = console_for(file)
    if not found["nodes"]:
        console.print("No node yet. Its agent, or a rank on it, has to be heard first.")
        return
    table = table_of(
        "node",
        ">failures",
        ">per 1,000\nnode-days",
        ">incidents",
        ">steps\nlost",
        ">GPU time\nlost",
        "last failure",
    )
    for one in found["nodes"]:
        table.add_row(
            str(one["node"]),
            wording.count(one["failures"]),
            _rate(one["per_1000_node_days"]),
            wording.count(len(one["incidents"])),
            wording.count(one["steps"]),
            wording.duration(one["gpu_ns"]),
            "" if one["last_failure"] is None else wording.when(one["last_failure"]),
        )
    print_whole(console, table)
    fleet = found["fleet"]
    console.print(
        f"All nodes: {_counted(fleet)}",
        soft_wrap=True,
    )


def print_node(one: Mapping[str, Any], file: IO[str] | None = None) -> None:
    """Print one node: how often it failed, its GPUs, its runs, and how to cordon it."""
    console = console_for(file)
    rate = one["per_1000_node_days"]
    again = ", a repeat offender" if one["repeats"] else ""
    console.print(
        f"{one['node']}: {wording.counted(one['failures'], 'failure')}{again}", soft_wrap=True
    )
    console.print(
        _counted(rate),
        soft_wrap=True,
    )
    console.print(
        f"{wording.counted(len(one['incidents']), 'incident')}, "
        f"{wording.counted(one['steps'], 'step')} and {wording.duration(one['gpu_ns'])} "
        "of GPU time lost"
    )
    for table in (_gpus(one), _stays(one), _health(one)):
        if table.row_count:
            console.print(table)
    for gpu in one["gpus"]:
        for advice in gpu["advice"]:
            console.print(f"{gpu['device']}: {advice}", soft_wrap=True)
    if one["failures"] or one["incidents"]:
        known = one["scheduler"] is not None
        console.print("Keep new work off it with" + (":" if known else " one of:"))
        for command in one["cordon"]:
            console.print(f"  {command}", soft_wrap=True)


def _counted(rate: Mapping[str, Any]) -> str:
    """Return the failures while a run was there, over what time, and their rate."""
    spent = wording.duration(round(rate["node_days"] * NS_PER_DAY))
    return (
        f"{wording.counted(rate['failures'], 'failure')} in {spent} with a run, "
        f"{_rate(rate)} per 1,000 node-days (95 % interval)"
    )


def _rate(rate: Mapping[str, Any]) -> str:
    """Return a rate and its interval; without exposure neither is known."""
    if rate["rate"] is None:
        return wording.UNKNOWN
    return f"{rate['rate']:,.1f} ({rate['low']:,.1f} to {rate['high']:,.1f})"


def _gpus(one: Mapping[str, Any]) -> Table:
    table = table_of(
        "GPU", "address", ">faults", "what it had", ">incidents", ">steps lost", ">GPU time lost"
    )
    for gpu in one["gpus"]:
        table.add_row(
            gpu["device"],
            gpu["pci_address"] or "",
            wording.count(gpu["faults"]),
            ", ".join(gpu["names"]),
            wording.count(len(gpu["incidents"])),
            wording.count(gpu["steps"]),
            wording.duration(gpu["gpu_ns"]),
        )
    return table


def _stays(one: Mapping[str, Any]) -> Table:
    table = table_of("run", "from", "to", ">changes of health")
    for stay in one["stays"]:
        table.add_row(
            stay["run"],
            wording.when(stay["start"]),
            "still there" if stay["live"] else wording.when(stay["end"]),
            wording.count(len(stay["health"])),
        )
    return table


def _health(one: Mapping[str, Any]) -> Table:
    table = table_of("health", "GPU", "before the run", "after", "run")
    for stay in one["stays"]:
        for change in stay["health"]:
            table.add_row(
                wording.plain(change["what"]),
                change["device"] or "",
                _value(change["before"]),
                _value(change["after"]),
                stay["run"],
            )
    return table


def _value(value: Any) -> str:
    if value is None:
        return wording.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return wording.count(value)
    return ", ".join(map(str, value)) or "nothing" if isinstance(value, list) else str(value)
