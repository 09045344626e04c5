"""`headway ask`: the saved questions, with values for their parameters."""

import argparse
import json
import time
from typing import Any

from headway.cli.asking import add_source, source
from headway.cli.moments import moment
from headway.cli.refusal import Refusal
from headway.storage.questions import QUESTIONS, Parameter, Question


def add(subparsers: Any) -> None:
    """Declare the command, and one below it for each question."""
    parser = subparsers.add_parser(
        "ask",
        help="ask a saved question about incidents, recovery, nodes or configuration",
        description="Answer a saved question; without one, list them. `headway ask QUESTION "
        "--help` tells its parameters. What else there is to know, `headway sql` answers.",
    )
    parser.add_argument("--json", action="store_true", help="Print what programs read.")
    parser.set_defaults(run=run, question=None)
    names = parser.add_subparsers(dest="question", metavar="QUESTION")
    for question in QUESTIONS.values():
        _add(names, question)


def _add(names: Any, question: Question) -> None:
    parser = names.add_parser(
        question.name,
        help=question.asks,
        description=f"{question.asks} {question.notes}".replace("%", "%%"),
    )
    for parameter in question.parameters:
        default = "" if parameter.default is None else f" Default: {parameter.default}."
        when = " An ISO time, or 7d for seven days ago." if parameter.kind == "time" else ""
        parser.add_argument(
            f"--{parameter.name}",
            dest=f"parameter_{parameter.name}",
            metavar=parameter.name.upper(),
            choices=parameter.choices or None,
            type=int if parameter.kind == "integer" else str,
            help=f"{parameter.sentence}{default}{when}",
        )
    form = parser.add_mutually_exclusive_group()
    # without a default, so that one that was written before the question's name stands
    form.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS,
        help="Print the object of the read API.",
    )
    form.add_argument("--csv", action="store_true", help="Print comma-separated values.")
    form.add_argument("--sql", action="store_true", help="Print the statement and ask nothing.")
    add_source(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the answer, or what can be asked."""
    if arguments.question is None:
        _print_questions(as_json=arguments.json)
        return 0
    from headway.cli.rows_text import print_csv, print_rows, warn_cut

    question = QUESTIONS[arguments.question]
    if arguments.sql:
        print(question.sql, end="")
        return 0
    values = {one.name: _value(one, arguments) for one in question.parameters}
    with source(arguments) as client:
        found = client.question(question.name, values)
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
        return 0
    if arguments.csv:
        print_csv(found)
    else:
        print(question.asks)
        print_rows(found)
    warn_cut(found["truncated"], len(found["rows"]))
    return 0


def _value(parameter: Parameter, arguments: argparse.Namespace) -> str | int | None:
    given: str | int | None = getattr(arguments, f"parameter_{parameter.name}")
    if given is None or parameter.kind != "time":
        return given
    try:
        return moment(str(given), time.time_ns())
    except ValueError as error:
        raise Refusal(f"--{parameter.name}: {error}") from error


def _print_questions(*, as_json: bool) -> None:
    from dataclasses import asdict

    from headway.cli.tables import console_for, table_of

    if as_json:
        print(json.dumps([asdict(one) for one in QUESTIONS.values()], sort_keys=True))
        return
    table = table_of("Name", "Question")
    for one in QUESTIONS.values():
        table.add_row(one.name, one.asks)
    console_for(None).print(table)
