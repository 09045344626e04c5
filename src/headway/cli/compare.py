"""`headway compare`: two runs, two windows or two configurations side by side."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from headway.cli.asking import add_source, source
from headway.cli.moments import moment, stretch
from headway.cli.refusal import Refusal

if TYPE_CHECKING:
    from headway.storage.client import CollectorClient

_SIDES = """\
a side is one of
  RUN             a run, by its id, or by its name for the newest of that name
  RUN#N           the run while the configuration of its attempt N held
  NAME=VALUE      all runs while a setting held: checkpoint_interval=200, timeouts.heartbeat=60s
  @FROM/TO        all runs between two times: @14d/7d is the week before the last, @7d the last
  RUN@FROM/TO     a part of a run; NAME=VALUE@FROM/TO and RUN#N@FROM/TO as well
A time is so long before the end of the run, or before the newest sign of any run, or an ISO time.
Write run:NAME where the name of a run holds one of the signs # = @.
"""
_RUN = "run:"


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "compare",
        help="two runs, windows or configurations side by side, and what of it may be chance",
        description="Set two sides beside each other: where their time went, failures, recovery "
        "and checkpoints, with the difference and what of it chance explains.",
        epilog=_SIDES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("one", metavar="A", help="One side.")
    parser.add_argument("other", metavar="B", help="The other side.")
    parser.add_argument(
        "--label",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="Of all runs take only those with this label, such as team=research.",
    )
    parser.add_argument(
        "--exclude",
        metavar="FROM/TO",
        action="append",
        default=[],
        help="Leave out a stretch of both, such as planned maintenance; times before the newest "
        "sign of any run. May be repeated.",
    )
    parser.add_argument("--json", action="store_true", help="Print the object of the read API.")
    add_source(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison."""
    with source(arguments) as client:
        asked = {
            f"{name}_{part}": value
            for name in ("one", "other")
            for part, value in _side(client, getattr(arguments, name)).items()
        }
        found = client.comparison(
            label=arguments.label, exclude=_excluded(client, arguments.exclude), **asked
        )
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
    else:
        from headway.cli.comparison_text import print_comparison

        print_comparison(found)
    return 0


def _side(client: "CollectorClient", text: str) -> dict[str, Any]:
    """Return what the API is asked for one side."""
    if text.startswith(_RUN):
        return {"run": text.removeprefix(_RUN)}
    of, at, window = text.partition("@")
    if not of and not at:
        raise Refusal("a side is empty", "`headway compare --help` lists what a side can be")
    asked: dict[str, Any] = {}
    if "=" in of:
        asked["setting"] = of
    elif of:
        name, number, attempt = of.partition("#")
        asked["run"] = name
        if number:
            asked["attempt"] = _attempt(text, attempt)
    if at:
        asked |= _window(client, text, asked.get("run"), window)
    return asked


def _attempt(text: str, number: str) -> int:
    if not (number.isascii() and number.isdecimal() and int(number[:9])):
        raise Refusal(
            f"{text!r} names no attempt", "write RUN#2 for the configuration of its second attempt"
        )
    return int(number[:9])


def _window(client: "CollectorClient", text: str, name: str | None, window: str) -> dict[str, Any]:
    now = _newest(client, name)
    first, _, last = window.partition("/")
    try:
        found = {
            part: moment(given, now)
            for part, given in (("start", first), ("end", last))
            if given.strip()
        }
    except ValueError as error:
        raise Refusal(f"{text!r}: {error}") from error
    if not found:
        raise Refusal(f"{text!r} has no time", "write @7d, @14d/7d or RUN@2h/1h")
    return found


def _newest(client: "CollectorClient", name: str | None) -> int:
    """Return the newest moment of a run, or of all."""
    if name is None:
        return int(client.fleet()["end"])
    report = client.report(name)
    return int(report["as_of"] if report["end"] is None else report["end"])


def _excluded(client: "CollectorClient", given: list[str]) -> list[str]:
    if not given:
        return []
    now = _newest(client, None)
    try:
        return ["{}-{}".format(*stretch(one, now)) for one in given]
    except ValueError as error:
        raise Refusal(str(error)) from error
