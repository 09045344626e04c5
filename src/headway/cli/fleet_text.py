"""The totals of many runs as tables for a terminal."""

from collections.abc import Mapping
from typing import IO, Any

from rich.table import Table

from headway import wording
from headway.cli.tables import console_for, print_whole, table_of
from headway.fleet import words
from headway.fleet.sides import SIDES
from headway.metrics import INFRASTRUCTURE_FORMULA, TRAINING_FORMULA


def print_fleet(found: Mapping[str, Any], file: IO[str] | None = None) -> None:
    """Print one line per group of runs over its GPU time, and whose its incidents were."""
    console = console_for(file)
    if not any(group["runs"] for group in found["groups"]):
        console.print("No run lived then. See which there are with `headway report`.")
        return
    for table in (_losses(found), _failures(found)):
        print_whole(console, table)
    console.print(
        f"From {wording.when(found['start'])} to {wording.when(found['end'])}, over the time of "
        "GPUs held.",
        soft_wrap=True,
    )
    console.print(
        f"training = {TRAINING_FORMULA}; infrastructure = {INFRASTRUCTURE_FORMULA}; lost = elapsed "
        "- productive; between failures = time up / failures; preemptions, time limits and stops "
        "by people are no failures",
        soft_wrap=True,
    )
    price = found["price"]
    if price is None:
        console.print(words.NO_PRICE, soft_wrap=True)
    else:
        console.print(f"One GPU-hour: {wording.money(price['per_gpu_hour'], price['currency'])}.")


def _losses(found: Mapping[str, Any]) -> Table:
    price = found["price"]
    table = table_of(
        found["by"] or "fleet",
        ">runs",
        ">running",
        ">GPU time",
        ">training",
        ">infra-\nstructure",
        ">lost",
        *([">cost"] if price else []),
    )
    for group in found["groups"]:
        time = group["gpu_time"]
        table.add_row(
            _name(found["by"], group["label"]),
            wording.count(group["runs"]),
            wording.count(group["running"]),
            wording.gpu_hours(time["elapsed_ns"]),
            *(
                wording.ratio_range(time[name]["low"], time[name]["high"])
                for name in ("training_goodput", "infrastructure_goodput")
            ),
            words.lost(group["lost_gpu_ns"]),
            *([words.cost(group["lost_cost"], price)] if price else []),
        )
    return table


def _failures(found: Mapping[str, Any]) -> Table:
    table = table_of(
        found["by"] or "fleet",
        ">open",
        ">incidents",
        ">failures",
        ">between\nfailures",
        ">recovery\np50",
        ">recovery\np95",
        *(f">{_stacked(side.title)}" for side in SIDES.values()),
        title="Incidents, and the GPU time that they cost, by whose they are",
    )
    for group in found["groups"]:
        sides = {one["side"]: one["lost_gpu_ns"] for one in group["sides"]}
        table.add_row(
            _name(found["by"], group["label"]),
            wording.count(group["open_incidents"]),
            wording.count(group["incidents"]),
            wording.count(group["mtbf"]["failures"]),
            words.mtbf(group["mtbf"]),
            *(_time(group["recovered_ns"][name]) for name in ("p50", "p95")),
            *(wording.gpu_hours(sides.get(name, 0)) for name in SIDES),
        )
    return table


def _stacked(title: str) -> str:
    """Return a heading of at most two words a line."""
    first, _, rest = title.lower().partition(" ")
    return f"{first}\n{rest}" if rest else first


def _time(ns: int | None) -> str:
    return "" if ns is None else wording.duration(ns)


def _name(by: str | None, label: str | None) -> str:
    if by is None:
        return "all runs"
    return "without it" if label is None else label
