"""`headway token`: who may do what at the collector."""

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

from headway.cli.options import add_settings, settings_of
from headway.cli.refusal import Refusal
from headway.collector import tokens
from headway.collector.tokens import SCOPES, Token, TokenError
from headway.settings import CollectorSettings


def add(subparsers: Any) -> None:
    """Declare the commands."""
    parser = subparsers.add_parser(
        "token",
        help="say who may do what at the collector",
        description="Make, list and revoke the tokens of the collector's file. A running collector "
        "notices at once. From the first token on, nobody is let in without one.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _action(actions, "list", _list, "list the tokens, without their secrets").add_argument(
        "--json", action="store_true", help="Print one JSON object."
    )
    revoke = _action(actions, "revoke", _revoke, "make a token invalid")
    revoke.add_argument("name", metavar="NAME", help="Name of the token.")
    make = _action(
        actions,
        "add",
        _add,
        "make a token and print its secret once",
        " The secret alone goes to standard output; only its hash is kept.",
    )
    make.add_argument("name", metavar="NAME", help="Name of the token, for lists and refusals.")
    make.add_argument(
        "--scope",
        action="append",
        required=True,
        choices=tuple(SCOPES),
        help="What it allows; may be given again. "
        + "; ".join(f"`{scope}`: {meaning}" for scope, meaning in SCOPES.items())
        + ".",
    )
    make.add_argument(
        "--run",
        dest="pattern",
        metavar="PATTERN",
        help="Let it write only to runs of such names, such as `llama-*`, and nothing about nodes.",
    )


def _action(
    actions: Any, name: str, run: Any, sentence: str, more: str = ""
) -> argparse.ArgumentParser:
    description = f"{sentence[0].upper()}{sentence[1:]}.{more}"
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=sentence, description=description
    )
    add_settings(parser, CollectorSettings, only=("tokens",))
    parser.set_defaults(run=run)
    return parser


def _add(arguments: argparse.Namespace) -> int:
    path = settings_of(CollectorSettings, arguments).tokens
    try:
        token, secret = tokens.new_token(
            arguments.name, arguments.scope, arguments.pattern, time.time_ns()
        )
        tokens.add(path, token)
    except TokenError as error:
        raise Refusal(str(error)) from error
    print(f"{_sentence(token)}; its hash is in {path}", file=sys.stderr)
    print("this is its secret, which is shown only now; set it as HEADWAY_TOKEN", file=sys.stderr)
    print(secret)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    path = settings_of(CollectorSettings, arguments).tokens
    try:
        found = tokens.read(path)
    except FileNotFoundError as error:
        raise Refusal(
            f"there is no file of tokens at {str(path)!r}",
            "make one with `headway token add`, or name another with --tokens",
        ) from error
    except TokenError as error:
        raise Refusal(str(error)) from error
    if arguments.json:
        print(json.dumps({"tokens": [_object(token) for token in found]}, sort_keys=True))
        return 0
    for token in found:
        made = datetime.fromtimestamp(token.created / 1e9, UTC)
        print(f"{_sentence(token)}; made {made:%Y-%m-%d %H:%M} UTC")
    return 0


def _revoke(arguments: argparse.Namespace) -> int:
    path = settings_of(CollectorSettings, arguments).tokens
    try:
        tokens.revoke(path, arguments.name)
    except TokenError as error:
        raise Refusal(str(error)) from error
    print(f"{arguments.name} is not valid any more")
    return 0


def _sentence(token: Token) -> str:
    runs = "" if token.run is None else f", writes to runs {token.run} only"
    return f"{token.name}: {' and '.join(token.scopes)}{runs}"


def _object(token: Token) -> dict[str, Any]:
    return {
        "name": token.name,
        "scopes": list(token.scopes),
        "run": token.run,
        "created": token.created,
    }
