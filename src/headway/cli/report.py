"""`headway report`: the ledger of one run in a terminal, with its formulas."""

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headway import wording
from headway.cli.asking import add_source, source
from headway.cli.moments import moment, stretch
from headway.cli.refusal import Refusal

if TYPE_CHECKING:
    from headway.storage.client import CollectorClient


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "report",
        help="print the ledger of a run, or list the runs",
        description="Print the ledger of a run with its formulas; without RUN, list the runs, or "
        "with --fleet sum them up: goodput, what was lost and what that costs, failures, recovery.",
    )
    parser.add_argument(
        "run_name",
        metavar="RUN",
        nargs="?",
        help="Identity of the run, or its name for the newest run of that name.",
    )
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="Only what followed: a time before now, or before the run's end, such as 90s, 15m, "
        "24h or 7d; or an ISO time. With --fleet, before the newest sign of any run.",
    )
    parser.add_argument("--until", metavar="WHEN", help="Only what came before; as --since.")
    parser.add_argument(
        "--exclude",
        metavar="FROM/TO",
        action="append",
        default=[],
        help="Leave out a stretch, such as planned maintenance; may be repeated.",
    )
    parser.add_argument("--fleet", action="store_true", help="Sum up all runs.")
    parser.add_argument(
        "--by",
        metavar="LABEL",
        help="With --fleet: by the values of a label, such as team, cluster or gpu_type; or month.",
    )
    parser.add_argument("--json", action="store_true", help="Print the object of the read API.")
    add_source(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the ledger."""
    from headway.cli.fleet_text import print_fleet
    from headway.cli.ledger_text import print_report, print_runs, print_window

    name: str | None = arguments.run_name
    part = bool(arguments.since or arguments.until or arguments.exclude)
    if name is None and part and not arguments.fleet:
        raise Refusal("a window needs a RUN or --fleet", "headway report lists the runs")
    if arguments.fleet and arguments.exclude:
        raise Refusal("--exclude leaves out a stretch of one run", "name the run, or leave it out")
    if arguments.fleet and name is not None:
        raise Refusal("--fleet is about all runs", f"leave out {name!r}, or --fleet")
    if arguments.by is not None and not arguments.fleet:
        raise Refusal(
            "--by groups the runs of the fleet", "write: headway report --fleet --by team"
        )
    found: Any
    with source(arguments) as client:
        if arguments.fleet:
            found = _fleet(client, arguments)
        elif name is None:
            found = client.runs()
        else:
            found = client.report(name)
            if part:
                found = client.window(found["run"], *_stretch(arguments, found))
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    elif arguments.fleet:
        print_fleet(found)
    elif name is None:
        print_runs(found)
    elif part:
        print_window(found)
    else:
        print_report(found)
    return 0


def _fleet(client: "CollectorClient", arguments: argparse.Namespace) -> dict[str, Any]:
    since, until = arguments.since, arguments.until
    if not since and not until:
        return client.fleet(arguments.by)
    try:
        if not until and (ago := -moment(since, 0)) > 0:
            return client.fleet(arguments.by, last=ago)  # the window that the pages show
        newest = client.fleet()["end"]
        start, end = (None if given is None else moment(given, newest) for given in (since, until))
    except ValueError as error:
        raise Refusal(str(error)) from error
    last = newest if end is None else end
    if last < (start or 0):
        raise Refusal(
            f"the part would begin at {wording.when(start)} and end at {wording.when(last)}",
            f"the newest sign of any run is of {wording.when(newest)}; choose them in this order",
        )
    return client.fleet(arguments.by, start=start, end=end)


def _stretch(
    arguments: argparse.Namespace, report: Mapping[str, Any]
) -> tuple[int | None, int | None, list[tuple[int, int]]]:
    """Return start, end and excluded stretches in UTC ns; times ago count from the run's end."""
    now = report["end"] or report["as_of"]
    try:
        start, end = (
            None if given is None else moment(given, now)
            for given in (arguments.since, arguments.until)
        )
        excluded = [stretch(given, now) for given in arguments.exclude]
    except ValueError as error:
        raise Refusal(str(error)) from error
    first, last = (report["start"] if start is None else start), (now if end is None else end)
    if last < first:
        own = f"the run lasted from {wording.when(report['start'])} to {wording.when(now)}"
        raise Refusal(
            f"the part would begin at {wording.when(first)} and end at {wording.when(last)}",
            f"{own}; choose --since and --until within it",
        )
    return start, end, excluded
