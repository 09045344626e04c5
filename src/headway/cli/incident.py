"""`headway incident`: one incident in a terminal, and what a person says about it."""

import argparse
import json
from pathlib import Path
from typing import Any

from headway.cli.asking import add_source, source
from headway.cli.incident_document import FORMS, write_postmortem
from headway.cli.notes import (
    add_labels,
    author_of,
    check_can_be_recorded,
    check_says_something,
    record,
)
from headway.cli.refusal import Refusal
from headway.events import CAUSES

_ACTIONS = ("ack", "cause", "note")


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "incident",
        help="show one incident, take charge of it, correct its cause, or note something",
        description="Show one incident: what broke, whose it was, what it cost, and the evidence. "
        "`ack` says that you take charge; `cause CAUSE` corrects the cause, and the verdict of "
        "the rule stays on record beside yours; `note TEXT` keeps words, `--label` marks it. "
        "--markdown and --html write the post-mortem, in the time zone of this machine or of TZ.",
    )
    parser.add_argument("incident", metavar="ID", help="Identity of the incident.")
    parser.add_argument(
        "action", metavar="ack|cause|note", nargs="?", choices=_ACTIONS, help="What to record."
    )
    parser.add_argument(
        "words",
        metavar="CAUSE|TEXT",
        nargs="?",
        help=f"Text of the note, or a cause: {', '.join(CAUSES)}.",
    )
    parser.add_argument("--author", help="Who says so. Default: the name of your login.")
    parser.add_argument("--reason", help="Why the cause is another one.")
    add_labels(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="Print the object of the read API.")
    for name in FORMS:
        form.add_argument(
            f"--{name}",
            dest="form",
            action="store_const",
            const=name,
            help=f"Write the post-mortem as {FORMS[name]}.",
        )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="File of the post-mortem, which is replaced. Default: standard output.",
    )
    add_source(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Record what was said, if anything, and print the incident as it then reads."""
    from headway.cli.incident_text import print_incident

    _check(arguments)
    identity: str = arguments.incident
    with source(arguments) as client:
        if arguments.action == "ack":
            found = client.acknowledge(identity, author_of(arguments))
        elif arguments.action == "cause":
            author, reason = author_of(arguments), arguments.reason
            found = client.correct(identity, arguments.words, author, reason)
        elif arguments.action == "note":
            record(client, "incident", identity, arguments.words, arguments)
            found = client.incident(identity)
        elif arguments.form is not None:
            write_postmortem(client.postmortem(identity), arguments.form, arguments.output)
            return 0
        else:
            found = client.incident(identity)
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    else:
        print_incident(found)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse words that do not belong together."""
    action, words, form = arguments.action, arguments.words, arguments.form
    if form is not None and action is not None:
        raise Refusal(f"--{form} writes, and {action} records", "give two commands")
    if arguments.output is not None and form is None:
        raise Refusal("--output is where a post-mortem goes", "add --markdown or --html")
    if action is not None:
        check_can_be_recorded(arguments)
    if action == "cause" and words not in CAUSES:
        what = "cause needs a cause" if words is None else "unknown cause"
        given = "" if words is None else f" {words!r}"
        raise Refusal(f"{what}{given}", f"choose one of: {', '.join(CAUSES)}")
    if (action != "cause" and arguments.reason is not None) or (action == "ack" and words):
        raise Refusal(
            "a cause and a reason belong to a correction",
            f"write: headway incident {arguments.incident} cause CAUSE --reason REASON",
        )
    if action != "note" and (arguments.label or arguments.remove_label):
        raise Refusal(
            "labels belong to a note",
            f"write: headway incident {arguments.incident} note --label LABEL",
        )
    if action == "note":
        check_says_something(words, arguments)
