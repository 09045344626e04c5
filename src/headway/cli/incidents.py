"""`headway incidents`: the incidents of a run in a terminal."""

import argparse
import json
from typing import Any

from headway.cli.asking import add_source, source


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "incidents",
        help="list the incidents of a run",
        description="List the incidents of a run, the newest first; without RUN, those of all.",
    )
    parser.add_argument(
        "run_name",
        metavar="RUN",
        nargs="?",
        help="Identity of the run, or its name for the newest run of that name.",
    )
    parser.add_argument("--json", action="store_true", help="Print the objects of the read API.")
    add_source(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the incidents."""
    from headway.cli.incident_text import print_incidents

    with source(arguments) as client:
        found = client.incidents(arguments.run_name)
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    else:
        print_incidents(found)
    return 0
