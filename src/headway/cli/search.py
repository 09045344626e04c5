"""`headway search`: what was noted, seen and configured, and what followed a change."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from headway.cli.asking import add_source, source
from headway.search import KINDS
from headway.wording import counted, ratio_range, when


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "search",
        help="find notes, incidents, changed settings and results by words",
        description="Find what was noted, seen and configured: `headway search heartbeat timeout` "
        "tells when that was changed and what followed. A word matches where a word begins with "
        "it; what stands in quotes must be there as it is.",
    )
    parser.add_argument("words", metavar="WORD", nargs="+", help="What to look for.")
    parser.add_argument(
        "--kind",
        action="append",
        default=[],
        choices=KINDS,
        help=f"Only things of this kind: {', '.join(KINDS)}. May be repeated.",
    )
    parser.add_argument("--run", dest="of", metavar="RUN", help="Only what is about this run.")
    parser.add_argument(
        "--limit", type=int, default=10, metavar="N", help="Most things found. Default: 10."
    )
    parser.add_argument("--json", action="store_true", help="Print the object of the read API.")
    add_source(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; 1 where nothing was."""
    with source(arguments) as client:
        answer = client.search(
            " ".join(arguments.words),
            kind=arguments.kind,
            run=arguments.of,
            limit=arguments.limit,
        )
    if arguments.json:
        print(json.dumps(answer, sort_keys=True))
    else:
        _print(answer)
    return 0 if answer["found"] else 1


def _print(answer: Mapping[str, Any]) -> None:
    from headway.cli.tables import console_for

    console = console_for(None)
    if not answer["found"]:
        console.print(
            f"Nothing of {counted(answer['searched'], 'thing')} says that.", soft_wrap=True
        )
    for one in answer["found"]:
        console.print(f"{when(one['time'])}  {one['kind']}: {one['title']}", soft_wrap=True)
        if one["line"] != one["title"]:
            console.print(f"    {one['line']}", soft_wrap=True)
        if one["followed"] is not None:
            _print_followed(console, one["followed"])
        console.print(f"    {_next(one)}", soft_wrap=True)


def _print_followed(console: Any, followed: Mapping[str, Any]) -> None:
    before, after = (ratio_range(**followed[name]) for name in ("goodput_before", "goodput"))
    console.print(f"    training goodput {before} before, {after} from then on", soft_wrap=True)
    met = counted(followed["incidents"], "incident")
    tried = counted(followed["attempts"], "attempt")
    console.print(f"    {met} in {tried}, up to {when(followed['end'])}", soft_wrap=True)
    for one in followed["first_incidents"]:
        console.print(f"      {when(one['opened'])}  {one['headline']}", soft_wrap=True)


def _next(one: Mapping[str, Any]) -> str:
    """Return the command that tells more."""
    if one["kind"] == "incident":
        return f"headway incident {one['subject']}"
    if one["followed"] is not None:
        run, before = one["run"], one["followed"]["attempt_before"]
        return f"headway compare {run}#{one['attempt']} {run}#{before}"
    if one["kind"] == "note":
        return f"headway note {one['about']} {one['subject']}"
    if one["kind"] == "result":
        return f"headway attach --configuration {one['subject']}"
    return f"headway report {one['run']}"
