"""`headway attach`: keep the result of a benchmark or a drill with what it was configured with."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from headway.cli.asking import add_source, source
from headway.cli.notes import author_of, check_can_be_recorded
from headway.cli.refusal import Refusal
from headway.wording import when

_STDIN = "-"


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "attach",
        help="keep a benchmark's or a drill's result with the configuration that produced it",
        description="Keep the JSON object that a benchmark or a drill printed with the "
        "configuration of a run's attempt; without FILE, list what was attached. The Run page "
        "shows it with the settings, `headway search` finds it, `headway compare` compares it.",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="File with the JSON object, alone or as its last line; `-` reads the standard input.",
    )
    parser.add_argument("--run", dest="of", metavar="RUN", help="Run, by its id or its name.")
    parser.add_argument(
        "--attempt", type=int, metavar="N", help="Number of its attempt. Default: the newest."
    )
    parser.add_argument(
        "--configuration", metavar="ID", help="Id of the attempt, instead of a run and a number."
    )
    parser.add_argument(
        "--title",
        help="Name of the benchmark or drill; results of one title compare. Default: the file's "
        "name.",
    )
    parser.add_argument("--author", help="Who says so. Default: the name of your login.")
    parser.add_argument("--json", action="store_true", help="Print the objects of the read API.")
    add_source(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Attach a result, or list those that are."""
    if arguments.file is None:
        return _list(arguments)
    check_can_be_recorded(arguments)
    if (arguments.of is None) == (arguments.configuration is None):
        raise Refusal("of which configuration?", "name --run RUN, or --configuration ID")
    title = arguments.title
    if title is None:
        if arguments.file == _STDIN:
            raise Refusal("what is it called?", "name the benchmark or drill with --title")
        title = Path(arguments.file).stem
    content = _content(arguments.file)
    with source(arguments) as client:
        kept = client.attach(
            title,
            content,
            author_of(arguments),
            run=arguments.of,
            attempt=arguments.attempt,
            configuration=arguments.configuration,
        )
    if arguments.json:
        print(json.dumps(kept, sort_keys=True))
    else:
        print(f"{title} is kept with attempt {kept['configuration']} of {kept['run']}")
    return 0


def _content(file: str) -> str:
    """Return the JSON object of a file, which may come after lines of other words."""
    try:
        text = sys.stdin.read() if file == _STDIN else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"{file!r} cannot be read: {error}", "name the file of a result") from error
    lines = text.strip().splitlines()
    for given in (text, lines[-1] if lines else ""):
        try:
            if isinstance(json.loads(given), dict):
                return given
        except (ValueError, RecursionError):
            continue
    raise Refusal(
        f"{file!r} holds no JSON object, neither alone nor as its last line",
        "write one with `headway drill ... --json` or `scripts/bench NAME --json`",
    )


def _list(arguments: argparse.Namespace) -> int:
    with source(arguments) as client:
        of = None if arguments.of is None else client.report(arguments.of)["run"]
        found = client.results(run=of, configuration=arguments.configuration, title=arguments.title)
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
        return 0
    from headway.cli.tables import console_for, table_of

    console = console_for(None)
    if not found:
        console.print("Nothing is attached.")
        return 0
    table = table_of("Title", "run", "attempt", "when", "who", ">numbers")
    for one in found:
        numbers = str(len(one["numbers"]))
        table.add_row(
            one["title"],
            one["run"],
            one["configuration"],
            when(one["time"]),
            one["author"] or "",
            numbers,
        )
    console.print(table)
    return 0
