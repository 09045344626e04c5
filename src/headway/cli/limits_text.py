"""How near a run came to its limits, as tables for a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from headway import wording
from headway.cli.tables import table_of


def budgets(report: Mapping[str, Any]) -> Table:
    """Return the restarts that each layer has left."""
    table = table_of("Restarts left", ">", ">of")
    for layer, budget in report["restart_budgets"].items():
        limit = budget["limit"]
        table.add_row(
            wording.plain(layer).capitalize(),
            wording.count(budget["remaining"]),
            "" if limit is None else wording.count(limit),
        )
    return table


def longest_phases(report: Mapping[str, Any]) -> Table:
    """Return the longest of each phase beside the timeout that it came nearest to."""
    table = table_of("Longest of each", ">took", ">share", "of the timeout", ">rank", ">attempt")
    nearest: dict[str, Mapping[str, Any]] = {}
    for one in report["longest_phases"]:
        known = nearest.setdefault(one["phase"], one)
        if one["ratio"] is not None and one["ratio"] > known["ratio"]:
            nearest[one["phase"]] = one
    numbers = {one["attempt"]: one["number"] for one in report["attempt_list"]}
    for one in nearest.values():
        timeout = one["timeout"]
        table.add_row(
            wording.plain(one["phase"]).capitalize(),
            wording.duration(one["longest_ns"]),
            "" if timeout is None else wording.percent(one["ratio"]),
            "" if timeout is None else _timeout(timeout, one["timeout_ns"]),
            wording.count(one["rank"]),
            wording.count(numbers[one["attempt"]]),
        )
    return table


def _timeout(name: str, limit: int) -> str:
    """Return a timeout as words, which break where `in_process.soft_timeout` would be cut."""
    return f"{wording.plain(name.replace('.', ' '))} {wording.duration(limit)}"
