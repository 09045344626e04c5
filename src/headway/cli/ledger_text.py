"""A report object as tables for a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from rich.table import Table

from headway import wording
from headway.cli.checkpoint_text import print_writing
from headway.cli.limits_text import budgets, longest_phases
from headway.cli.tables import console_for, print_whole, table_of
from headway.metrics import category

_SECOND = 1_000_000_000
_SILENT = 60 * _SECOND
"""Age of the last sign from which on the list of runs tells of it."""


def print_runs(runs: Sequence[Mapping[str, Any]]) -> None:
    """Print one line per run, or what to do when there is none."""
    console = console_for(None)
    if not runs:
        console.print(
            "No run yet. Start one with `headway demo`, or your own training under `headway run`."
        )
        return
    table = table_of(
        "run", "state", ">elapsed", ">training", ">infra-\nstructure", ">highest\nstep"
    )
    for run in runs:
        table.add_row(
            str(run["run"]),
            _state(run),
            wording.duration(run["elapsed_ns"]),
            _goodput(run["training_goodput"]),
            _goodput(run["infrastructure_goodput"]),
            wording.count(run["steps"]["highest"]),
        )
    print_whole(console, table)


def _state(run: Mapping[str, Any]) -> str:
    """Return the state of a run, and of a silent one since when it is silent."""
    heard = wording.last_heard(run)
    if heard is None or run["as_of"] - run["last_event"] < _SILENT:
        return str(run["state"])
    return f"{run['state']}\n{heard}"


def print_report(report: Mapping[str, Any], file: IO[str] | None = None) -> None:
    """Print the ledger of one run."""
    console = console_for(file)
    provisional = ", provisional" if report["provisional"] else ""
    heard = wording.last_heard(report)
    sign = "" if heard is None else f"; {heard}"
    console.print(f"{report['run']}: {report['state']}{provisional}{sign}")
    console.print(
        f"from {wording.when(report['start'])} to {wording.when(report['end'] or report['as_of'])}"
    )
    console.print(_goodputs(report))
    console.print(_ledger(report))
    console.print(_progress(report))
    if report["alternatives"]:
        console.print(_alternatives(report))
    print_writing(report["checkpoint_writing"], console)
    for table in (
        _restarts(report),
        _rollbacks(report),
        budgets(report),
        longest_phases(report),
        _gpu_losses(report),
        _problems(report),
    ):
        if table.row_count:
            console.print(table)


def print_window(part: Mapping[str, Any], file: IO[str] | None = None) -> None:
    """Print the ledger of a part of a run; what was left out is said."""
    console = console_for(file)
    console.print(
        f"{part['run']}: {wording.duration(part['elapsed_ns'])} "
        f"from {wording.when(part['start'])} to {wording.when(part['end'])}",
        soft_wrap=True,
    )
    for hole in part["excluded"]:
        console.print(f"without {wording.when(hole['start'])} to {wording.when(hole['end'])}")
    console.print(
        _goodputs({**part, "formulas": {**part, "checkpoint_efficiency": {"formula": ""}}})
    )
    console.print(_ledger({**part, "parts": {}}))


def _goodput(ratio: Mapping[str, float | None]) -> str:
    return wording.ratio_range(ratio["low"], ratio["high"])


def _seconds(ns: int) -> str:
    return f"{ns / _SECOND:,.3f} s"


def _goodputs(report: Mapping[str, Any]) -> Table:
    table = table_of("", ">", "how")
    for key, title in (
        ("training_goodput", "Training goodput"),
        ("infrastructure_goodput", "Infrastructure goodput"),
    ):
        how = report["formulas"][key]
        low, high = (_seconds(ns) for ns in how["numerator_ns"])
        numerator = low if low == high else f"{low} to {high}"
        table.add_row(
            title,
            _goodput(report[key]),
            f"{how['formula']}\n= {numerator} / {_seconds(how['denominator_ns'])}",
        )
    table.add_row(
        "Checkpoint efficiency",
        wording.percent(report["checkpoint_efficiency"]),
        report["formulas"]["checkpoint_efficiency"]["formula"],
    )
    return table


def _alternatives(report: Mapping[str, Any]) -> Table:
    table = table_of("By other libraries' formulas", ">", "how")
    for figure in report["alternatives"]:
        table.add_row(
            wording.plain(figure["name"]),
            wording.percent(figure["ratio"]),
            f"{figure['formula']}\n"
            f"= {_seconds(figure['numerator_ns'])} / {_seconds(figure['denominator_ns'])}",
        )
    return table


def _ledger(report: Mapping[str, Any]) -> Table:
    elapsed = report["elapsed_ns"]
    table = table_of("Where the time went", ">time", ">share", "parts")
    for name, ns in report["categories"].items():
        parts = report["parts"].get(name, {})
        table.add_row(
            category(name).title,
            _seconds(ns),
            wording.percent(ns / elapsed if elapsed else None),
            ", ".join(
                f"{wording.plain(part)} {wording.duration(spent)}"
                for part, spent in parts.items()
                if spent
            ),
        )
    table.add_section()
    table.add_row("Elapsed", _seconds(elapsed), wording.percent(1.0 if elapsed else None), "")
    return table


def _progress(report: Mapping[str, Any]) -> Table:
    steps, checkpoint = report["steps"], report["checkpoint"]
    table = table_of("Progress", "")
    target = "" if steps["target"] is None else f" of {wording.count(steps['target'])}"
    table.add_row("Highest step", wording.count(steps["highest"]) + target)
    table.add_row(
        "Steps executed",
        f"{wording.count(steps['executed'])}, {wording.count(steps['rework'])} of them again",
    )
    failed = wording.counted(report["failed_starts"], "failed start")
    table.add_row("Attempts", f"{wording.count(report['attempts'])}, {failed}")
    if checkpoint is None:
        table.add_row("Newest durable checkpoint", "none")
    else:
        age = checkpoint["age_s"]
        table.add_row(
            "Newest durable checkpoint",
            f"step {wording.count(checkpoint['step'])}, {checkpoint['state']}, "
            f"{wording.duration(None if age is None else round(age * _SECOND))} old",
        )
    arrival = report["arrival"]
    if arrival is not None:
        ends = [arrival["low"], arrival["high"]]
        early, late = ("never at this rate" if t is None else wording.when(t) for t in ends)
        table.add_row("Reaches its target", early if early == late else f"{early} to {late}")
    table.add_row("Steps at risk", wording.count(report["steps_at_risk"]))
    table.add_row("Dropped events", wording.count(report["dropped_events"]))
    if report["flags"]:
        table.add_row("Flags", "\n".join(map(wording.flag, report["flags"])))
    return table


def _restarts(report: Mapping[str, Any]) -> Table:
    table = table_of("Restarts by layer", "cause", ">number")
    for layer, causes in report["restarts"].items():
        for cause, number in causes.items():
            table.add_row(wording.plain(layer), wording.plain(cause), wording.count(number))
    return table


def _rollbacks(report: Mapping[str, Any]) -> Table:
    table = table_of("Incident", ">steps rolled back", ">time")
    for rollback in report["rollbacks"]:
        table.add_row(
            str(rollback["incident"]),
            _steps_lost(rollback),
            wording.duration(rollback["ns"]),
        )
    return table


def _steps_lost(rollback: Mapping[str, Any]) -> str:
    """Return a number, or the range that a log with a line for several steps leaves."""
    if "steps_range" not in rollback:
        return wording.count(rollback["steps"])
    least, most = rollback["steps_range"]
    return f"{wording.count(least)} to {wording.count(most)}"


def _gpu_losses(report: Mapping[str, Any]) -> Table:
    table = table_of("GPU", "node", "what it had", ">incidents", ">steps lost", ">GPU time lost")
    for one in report["gpu_losses"]:
        classes = (f"{count} {name}" for name, count in one["classes"].items())
        table.add_row(
            one["device"] or "not named",
            one["node"] or "",
            f"{', '.join(one['names'])} ({', '.join(classes)})" if one["names"] else "",
            wording.count(len(one["incidents"])),
            wording.count(one["steps"]),
            wording.duration(one["gpu_ns"]),
        )
    return table


def _problems(report: Mapping[str, Any]) -> Table:
    problems: Iterable[Mapping[str, Any]] = report["problems"]
    table = table_of("Problems with the evidence", "detail", ">times")
    for problem in problems:
        table.add_row(
            wording.plain(problem["kind"]),
            str(problem["detail"] or ""),
            wording.count(problem["count"]),
        )
    return table
