"""What an import found, for a terminal: the report, then what the log itself told."""

from collections.abc import Mapping
from typing import Any

from headway import wording
from headway.cli.ledger_text import print_report
from headway.wording import counted


def print_import(found: Mapping[str, Any]) -> None:
    """Print the runs of an import and its summary."""
    for run in found["runs"]:
        if "categories" in run:
            print_report(run)
        if "step_lines" in run["log"]:
            _log(run["log"])
        for one in run.get("differences", ()):
            print(
                f"{one['figure']}: {_figure(one['theirs'])} published, {_figure(one['ours'])} here"
            )
            print(f"  ours is {one['formula']}; {one['why']}")
    lines = found["lines"]
    kinds = ", ".join(f"{name} {count}" for name, count in found["formats"].items())
    print(
        f"{counted(lines['total'], 'line')}: {lines['understood']} understood ({kinds}), "
        f"{lines['ignored']} ignored, {sum(lines['suspicious'].values())} suspicious"
    )
    for what, count in sorted(lines["suspicious"].items()):
        print(f"  suspicious: {what}: {count}")
    for file in found["files"]:
        if file["skipped"] is not None:
            print(f"  left out: {file['path']} ({file['skipped']})")
        if file["torn"] is not None:
            print(f"  ends early: {file['path']} ({file['torn']})")
    clock = found["clock"]
    if clock["zone_assumed"]:
        print(f"stamps without a zone were taken for {clock['zone']}; see --zone")
    if clock["year_assumed"] is not None:
        print(f"stamps without a year were taken for {clock['year_assumed']}; see --year")
    if len(found["runs"]) > 1:
        print(f"{len(found['runs'])} runs: a training began again from step 1 after one was over")
    if "shipped" in found:
        shipped = found["shipped"]
        print(f"the collector has {counted(shipped['acknowledged'], 'record')} of it")
        if shipped["waiting"]:
            print(
                f"{counted(shipped['waiting'], 'record')} wait for more of the log: its last lines "
                "may still turn out to mean something else"
            )
        for name in shipped["runs"]:
            print(f"see: headway report {name}")


def _figure(value: float | None) -> str:
    if value is None:
        return wording.UNKNOWN
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _log(log: Mapping[str, Any]) -> None:
    if not log["timed"]:
        print("no line says when it was written: only durations are known; see --start")
    for gap in log["excerpt_gaps"][:10]:
        print(f"no line between steps {gap[0]} and {gap[1]}")
    for odd in log["anomalies"][:10]:
        print(
            f"{wording.plain(odd['type'])} from step {odd['first_step']} to {odd['last_step']} "
            f"({counted(odd['lines'], 'line')})"
        )
    for note in log["notes"][:10]:
        print(note)
