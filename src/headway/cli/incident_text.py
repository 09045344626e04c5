"""Incidents as tables for a terminal."""

from collections.abc import Mapping, Sequence
from typing import IO, Any

from rich.table import Table

from headway import wording
from headway.cli.tables import console_for, table_of

_PHASES = {
    "detect": "until somebody noticed",
    "teardown": "to end what was left",
    "wait": "for machines, or for nobody",
    "start": "processes, rendezvous, model",
    "load": "of the checkpoint",
    "recompute": "until caught up",
}
"""The phases of an incident in their order, with what each is spent on."""


def print_incidents(incidents: Sequence[Mapping[str, Any]], file: IO[str] | None = None) -> None:
    """Print one line per incident."""
    console = console_for(file)
    if not incidents:
        console.print("No incident.")
        return
    table = table_of("incident", "state", "opened", "what")
    for one in incidents:
        table.add_row(
            str(one["incident"]), str(one["state"]), wording.when(one["opened"]), one["headline"]
        )
    console.print(table)


def print_incident(one: Mapping[str, Any], file: IO[str] | None = None) -> None:
    """Print one incident: what, whose, what it cost, and on what evidence."""
    console = console_for(file)
    console.print(one["headline"], soft_wrap=True)
    console.print(
        f"Incident {one['incident']} of {one['run']}, number {one['number']}, {one['state']}"
    )
    tables = (_verdict(one), _times(one), _phases(one), _tries(one), _evidence(one), _said(one))
    for table in tables:
        if table.row_count:
            console.print(table)
    hidden = one["num_observations"] - len(one["observations"])
    if hidden:
        console.print(f"and {wording.counted(hidden, 'observation')} more")


def _verdict(one: Mapping[str, Any]) -> Table:
    table = table_of("Verdict", "")
    by_rule = f"{one['original_cause']} ({one['rule']})"
    if one["corrected_by"] is None:
        table.add_row("Cause", by_rule)
    else:
        reason = f": {one['reason']}" if one["reason"] else ""
        table.add_row("Cause", f"{one['cause']}, corrected by {one['corrected_by']}{reason}")
        table.add_row("By the rule", by_rule)
    suspects = [
        f"{what} {one[key]}"
        for what, key in (
            ("rank", "suspect_rank"),
            ("node", "suspect_node"),
            ("GPU", "suspect_gpu"),
        )
        if one[key] is not None
    ]
    if suspects:
        how = f" ({one['suspect_rule']})" if one["suspect_rule"] else ""
        table.add_row("Suspect", ", ".join(suspects) + how)
    weekly = one["gpu_repeats_in_all_runs"]
    if weekly is not None and weekly > 1:
        table.add_row("GPU in all runs", f"to blame for {weekly} incidents this week")
    table.add_row("Outcome", one["outcome"].replace("_", " "))
    valid = one["recovery_valid"]
    table.add_row("Recovery valid", f"{valid['valid']} ({valid['reason']})")
    for warning in one["warnings"]:
        table.add_row("Warning", warning)
    if one["suspected_false_alarm"]:
        table.add_row("Suspicion", "false alarm: the timeout hit a phase that may take long")
    if one["persistent"]:
        told = (f"{what} {count} times" for what, count in sorted(one["persistent"].items()))
        table.add_row("Repeats in a row", ", ".join(told))
    if one.get("labels"):
        table.add_row("Labels", ", ".join(one["labels"]))
    if one["acknowledged_by"] is not None:
        table.add_row("Taken charge of by", one["acknowledged_by"])
    return table


def _times(one: Mapping[str, Any]) -> Table:
    table = table_of("When", "", ">after")
    for title, key in (
        ("Opened", "opened"),
        ("Recovered", "recovered"),
        ("Caught up", "caught_up"),
        ("Closed", "closed"),
    ):
        time = one[key]
        after = "" if time is None else wording.duration(time - one["opened"])
        table.add_row(title, "not yet" if time is None else wording.when(time), after)
    if one["rollback_steps"] is not None:
        steps = wording.counted(one["rollback_steps"], "step")
        table.add_row("Rolled back", steps, wording.duration(one["rollback_ns"]))
    return table


def _phases(one: Mapping[str, Any]) -> Table:
    table = table_of("Phase", ">time", "")
    for name, meaning in _PHASES.items():
        table.add_row(name, wording.duration(one["phases"].get(name, 0)), meaning)
    opened = one["open_phase"]
    if opened is not None:
        table.add_row("now", "", f"rank {opened['rank']} is in {opened['phase']}")
    return table


def _tries(one: Mapping[str, Any]) -> Table:
    table = table_of("Attempt", "layer", "outcome", ">from step", "ended by", ">until then")
    for tried in one["tries"]:
        spent = sum(ns for name, ns in tried["phases"].items() if name != "recompute")
        table.add_row(
            str(tried["number"]),
            tried["layer"],
            tried["outcome"].replace("_", " "),
            wording.count(tried["resumed"]),
            tried["cause"] or "",
            wording.duration(spent),
        )
    return table


def _evidence(one: Mapping[str, Any]) -> Table:
    table = table_of("Evidence", "what", "where", "record")
    for item in one["observations"]:
        records = (f"{event['producer'][:8]}/{event['sequence']}" for event in item["events"])
        rank = "" if item["rank"] is None else f"rank {item['rank']} "
        table.add_row(
            wording.when(item["time"]),
            item["words"],
            f"{rank}{item['node'] or ''}".strip(),
            ", ".join(records),
        )
    return table


def _said(one: Mapping[str, Any]) -> Table:
    table = table_of("Said", "who", "what")
    for remark in one.get("history", ()):
        table.add_row(wording.when(remark["time"]), remark["author"] or "", wording.remark(remark))
    return table
