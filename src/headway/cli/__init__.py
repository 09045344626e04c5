"""The `headway` command: one module per command, each light until it runs.

Exit status: 0 fine; 1 the answer is "no" (a generated file is stale, a training failed); 2 wrong
use, a missing extra or a service that does not answer, with the next step; 130 after Ctrl-C.
"""

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from headway.cli.refusal import WRONG_USE, Refusal
from headway.settings import SettingError, unread_variables

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "demo": ("exporter", "training", "server"),
    "report": ("server",),
    "compare": ("server",),
    "incidents": ("server",),
    "incident": ("server",),
    "note": ("server",),
    "attach": ("server",),
    "nodes": ("server",),
    "ask": ("server",),
    "search": ("server",),
    "alerts": ("server",),
    "grafana": ("server",),
    "sql": ("server",),
    "storage": ("server",),
    "collect": ("server",),
    "token": (),
    "run": ("exporter",),
    "drill": ("exporter", "training", "server"),
    "agent": ("exporter",),
    "dashboard": ("server",),
    "import": ("exporter", "server"),
    "simulate": ("exporter", "server"),
    "doctor": (),
    "generate": ("server",),
}
"""Every command, in the order of the help, with the extras that it needs."""

_MODULES = {"import": "importing", "note": "notes", "token": "tokens"}
"""Modules whose command's name is a word of the language, or a module of its own."""

FINE = 0
INTERRUPTED = 128 + signal.SIGINT


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        try:
            found = version("headway")
        except PackageNotFoundError:
            found = "not installed"
        parser.exit(message=f"headway {found}\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    whole = argparse.ArgumentParser(
        prog="headway",
        description="Shows how much of a training run's time became lasting progress, and why "
        "the rest did not.",
    )
    whole.add_argument("--version", action=_Version, nargs=0, help="Print the version and stop.")
    subparsers = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"headway.cli.{_MODULES.get(name, name)}").add(subparsers)
    return whole


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = parser().parse_args(argv)
    if arguments.command != "doctor":  # which tells it among its findings
        for sentence in unread_variables():
            print(f"headway: {sentence}", file=sys.stderr)
    try:
        return int(arguments.run(arguments))
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "headway"):
            raise
        extras = ",".join(COMMANDS[arguments.command])
        return _refuse(
            f"headway {arguments.command} needs the package {missing!r}, which is not installed\n"
            f"install it with: pip install 'headway[{extras}]'"
        )
    except Refusal as error:
        return _refuse(str(error), error.status)
    except SettingError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        # The reader (head, less) has seen enough; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except KeyboardInterrupt:
        return INTERRUPTED


def _refuse(sentence: str, status: int = WRONG_USE) -> int:
    print(f"headway: {sentence}", file=sys.stderr)
    return status
