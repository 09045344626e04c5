"""`headway incident`: one incident in a terminal, and what a person says about it."""

import argparse
import getpass
import json
from typing import Any

from headway.cli.asking import add_source, source
from headway.cli.refusal import Refusal
from headway.events import CAUSES


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "incident",
        help="show one incident, take charge of it, or correct its cause",
        description="Show one incident: what broke, whose it was, what it cost, and the evidence. "
        "`ack` says that you take charge; `cause CAUSE` corrects the cause, and the verdict of "
        "the rule stays on record beside yours.",
    )
    parser.add_argument("incident", metavar="ID", help="Identity of the incident.")
    parser.add_argument(
        "action", metavar="ack|cause", nargs="?", choices=("ack", "cause"), help="What to record."
    )
    parser.add_argument("cause", metavar="CAUSE", nargs="?", help=f"One of: {', '.join(CAUSES)}.")
    parser.add_argument("--author", help="Who says so. Default: the name of your login.")
    parser.add_argument("--reason", help="Why the cause is another one.")
    parser.add_argument("--json", action="store_true", help="Print the object of the read API.")
    add_source(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Record what was said, if anything, and print the incident as it then reads."""
    from headway.cli.incident_text import print_incident

    _check(arguments)
    identity: str = arguments.incident
    with source(arguments) as client:
        if arguments.action == "ack":
            found = client.acknowledge(identity, _author(arguments))
        elif arguments.action == "cause":
            author, reason = _author(arguments), arguments.reason
            found = client.correct(identity, arguments.cause, author, reason)
        else:
            found = client.incident(identity)
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    else:
        print_incident(found)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse words that do not belong together."""
    if arguments.action is not None and arguments.database is not None:
        raise Refusal(
            "nothing can be recorded in a file that is only read",
            "start a collector on it, and leave --database out",
        )
    if arguments.action == "cause" and arguments.cause not in CAUSES:
        what = "cause needs a cause" if arguments.cause is None else "unknown cause"
        given = "" if arguments.cause is None else f" {arguments.cause!r}"
        raise Refusal(f"{what}{given}", f"choose one of: {', '.join(CAUSES)}")
    if arguments.action != "cause" and (arguments.cause or arguments.reason) is not None:
        raise Refusal(
            "a cause and a reason belong to a correction",
            f"write: headway incident {arguments.incident} cause CAUSE --reason REASON",
        )


def _author(arguments: argparse.Namespace) -> str:
    if arguments.author is not None:
        return str(arguments.author)
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise Refusal("your login has no name", "say who you are with --author NAME") from error
