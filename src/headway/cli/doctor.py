"""`headway doctor`: whether this machine and its set-up are fit to record, collect and show."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from headway.cli.findings import OK, PROBLEM, Finding, guarded
from headway.cli.refusal import NO


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "doctor",
        help="look whether this machine and its set-up are fit",
        description="Look at this machine and its set-up: Python and extras, settings and where "
        "each comes from, spools and agent, kernel log and GPUs, the collector and what the token "
        "allows, database and ports. What needs an extra that is not installed is left out. "
        "Nothing is changed. Exit status: 1 when there is a problem.",
    )
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what was found."""
    found = []
    for finding in findings():
        found.append(finding)
        if not arguments.json:
            _print(finding)
    num_problems = sum(finding.verdict == PROBLEM for finding in found)
    if arguments.json:
        listed = [asdict(finding) for finding in found]
        print(json.dumps({"problems": num_problems, "findings": listed}, sort_keys=True))
    return NO if num_problems else 0


def findings() -> Iterator[Finding]:
    """Look at everything that can be looked at with what is installed."""
    from headway.cli import doctor_collector as collector
    from headway.cli import doctor_machine as machine

    exporter, server = machine.installed("exporter"), machine.installed("server")
    yield from guarded("python", machine.python)
    yield from guarded("libraries", machine.libraries)
    yield from guarded("settings", machine.settings)
    yield from guarded("spools", machine.spools)
    if exporter:
        yield from guarded("kernel log", machine.kernel_log)
        yield from guarded("gpus", machine.gpus)
    yield from guarded("collector", lambda: collector.reachable(exporter=exporter, server=server))
    if server:
        yield from guarded("tokens", collector.tokens)
        yield from guarded("database", collector.database)
    yield from guarded("ports", lambda: collector.ports(exporter=exporter, server=server))


def _print(finding: Finding) -> None:
    print(f"{finding.verdict:<8} {finding.subject}: {finding.sentence}", flush=True)
    if finding.verdict != OK:
        print(f"{'':<8} -> {finding.next_step}", flush=True)
