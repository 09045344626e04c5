"""`headway note`: what people want to be remembered about runs, incidents, nodes and settings."""

import argparse
import getpass
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.cli.asking import add_source, source
from headway.cli.refusal import Refusal
from headway.events import NOTE_SUBJECTS

if TYPE_CHECKING:
    from headway.storage.client import CollectorClient

_SHOWN = 100


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "note",
        help="note something about a run, an incident, a node or a configuration, or read notes",
        description="Note something, or give and take labels; without TEXT and labels, list what "
        "people said about it; without any word, the newest notes of all. A configuration is named "
        "by its attempt. Notes are kept for good: nothing is changed or taken back.",
    )
    parser.add_argument(
        "about",
        metavar="|".join(NOTE_SUBJECTS),
        nargs="?",
        choices=NOTE_SUBJECTS,
        help="What kind of thing it is about.",
    )
    parser.add_argument(
        "subject", metavar="ID", nargs="?", help="The run, incident, node or attempt."
    )
    parser.add_argument("words", metavar="TEXT", nargs="?", help="Words of the note.")
    add_labels(parser)
    parser.add_argument("--author", help="Who says so. Default: the name of your login.")
    parser.add_argument("--search", metavar="TEXT", help="List only what holds these words.")
    parser.add_argument("--json", action="store_true", help="Print the objects of the read API.")
    add_source(parser)
    parser.set_defaults(run=run)


def add_labels(parser: argparse.ArgumentParser) -> None:
    """Give a command its options for labels."""
    parser.add_argument(
        "--label", metavar="LABEL", action="append", default=[], help="Give it this label."
    )
    parser.add_argument(
        "--remove-label", metavar="LABEL", action="append", default=[], help="Take this label."
    )


def run(arguments: argparse.Namespace) -> int:
    """Record a note, or print what was said."""
    about, subject = arguments.about, arguments.subject
    if about is not None and subject is None:
        raise Refusal(f"which {about}?", f"write: headway note {about} ID TEXT")
    says = bool(arguments.words or arguments.label or arguments.remove_label)
    if says:
        if about is None:
            raise Refusal("labels of what?", "write: headway note run ID --label LABEL")
        check_can_be_recorded(arguments)
    with source(arguments) as client:
        if says:
            found = record(client, about, subject, arguments.words, arguments)["notes"]
        else:
            asked = {"about": about, "subject": subject, "search": arguments.search}
            found = client.notes(**asked)[:_SHOWN]
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    else:
        print_remarks(found)
    return 0


def record(
    client: "CollectorClient",
    about: str,
    subject: str,
    words: str | None,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Record a note with the labels that were given; return what was said about its subject."""
    return client.note(
        about,
        subject,
        author_of(arguments),
        words,
        labels=arguments.label,
        labels_removed=arguments.remove_label,
    )


def author_of(arguments: argparse.Namespace) -> str:
    """Return who says it."""
    if arguments.author is not None:
        return str(arguments.author)
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise Refusal("your login has no name", "say who you are with --author NAME") from error


def check_can_be_recorded(arguments: argparse.Namespace) -> None:
    """Refuse to record anything in a file that is only read."""
    if arguments.database is not None:
        raise Refusal(
            "nothing can be recorded in a file that is only read",
            "start a collector on it, and leave --database out",
        )


def check_says_something(words: str | None, arguments: argparse.Namespace) -> None:
    """Refuse a note without words and labels."""
    if not (words or arguments.label or arguments.remove_label):
        raise Refusal("the note says nothing", "give it a text, or a label with --label")


def print_remarks(remarks: Sequence[Mapping[str, Any]]) -> None:
    """Print what people said, one line each."""
    from headway.cli.tables import console_for, table_of
    from headway.wording import remark, when

    console = console_for(None)
    if not remarks:
        console.print("Nobody has said anything yet.")
        return
    table = table_of("When", "about", "who", "what")
    for one in remarks:
        about = f"{one['about']} {one['subject']}"
        table.add_row(when(one["time"]), about, one["author"] or "", remark(one))
    console.print(table)
