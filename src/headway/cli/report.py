"""`headway report`: the ledger of one run in a terminal, with its formulas."""

import argparse
import json
from typing import Any

from headway.cli.options import add_settings, settings_of
from headway.cli.refusal import Refusal
from headway.settings import ClientSettings


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "report",
        help="print the ledger of a run, or list the runs",
        description="Print the ledger of a run with its formulas; without RUN, list the runs.",
    )
    parser.add_argument(
        "run_name",
        metavar="RUN",
        nargs="?",
        help="Identity of the run, or its name for the newest run of that name.",
    )
    parser.add_argument("--json", action="store_true", help="Print the object of the read API.")
    add_settings(parser, ClientSettings)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the ledger."""
    from headway.cli.ledger_text import print_report, print_runs
    from headway.storage.client import CollectorClient, CollectorError

    name: str | None = arguments.run_name
    found: Any
    try:
        with CollectorClient(settings_of(ClientSettings, arguments)) as client:
            found = client.runs() if name is None else client.report(name)
    except CollectorError as error:
        raise Refusal(error.sentence, error.next_step) from error
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    elif name is None:
        print_runs(found)
    else:
        print_report(found)
    return 0
