"""The totals of many runs as a table for a terminal."""

from collections.abc import Mapping
from typing import Any

from headway import wording
from headway.cli.tables import console_for, table_of
from headway.metrics import INFRASTRUCTURE_FORMULA, TRAINING_FORMULA


def print_fleet(found: Mapping[str, Any]) -> None:
    """Print one line per group of runs, its ratios over GPU time."""
    console = console_for(None)
    table = table_of(
        found["by"] or "fleet",
        ">runs",
        ">running",
        ">open\nincidents",
        ">GPU time",
        ">training",
        ">infra-\nstructure",
    )
    for group in found["groups"]:
        time = group["gpu_time"]
        table.add_row(
            _name(found["by"], group["label"]),
            wording.count(group["runs"]),
            wording.count(group["running"]),
            wording.count(group["open_incidents"]),
            wording.duration(time["elapsed_ns"]),
            *(
                wording.ratio_range(time[name]["low"], time[name]["high"])
                for name in ("training_goodput", "infrastructure_goodput")
            ),
        )
    console.print(table)
    console.print("Over the time of GPUs held, from the start to the end of each run.")
    console.print(f"training = {TRAINING_FORMULA}; infrastructure = {INFRASTRUCTURE_FORMULA}")


def _name(by: str | None, label: str | None) -> str:
    if by is None:
        return "all runs"
    return "without it" if label is None else label
