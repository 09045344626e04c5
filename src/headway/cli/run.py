"""`headway run`: a launcher under the node agent."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.cli.options import add_settings, settings_of
from headway.cli.refusal import Refusal
from headway.settings import AgentSettings, SettingError

if TYPE_CHECKING:
    from headway.exporter.launcher.run import Profile


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "run",
        usage="headway run [OPTIONS] -- COMMAND [ARGUMENT ...]",
        help="start a launcher under the node agent",
        description="Run a command unchanged, with its streams, signals and exit status passed "
        "through, while the node agent ships what its ranks record, and record what only their "
        "launcher and this node know: exit codes, signals, restarts, kills for lack of memory. "
        "Exit status: the command's; 128 + N after signal N; 127 if there is no such command, "
        "126 if it cannot be executed.",
    )
    add_settings(parser, AgentSettings)
    parser.add_argument(
        "--profile",
        metavar="NAME",
        help="Also read what the command writes as its log, for a training that records nothing: "
        "a format of `headway import` such as megatron, auto for any, or the TOML file of a "
        "profile.",
    )
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="The command and its arguments, after `--`.",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    words = list(arguments.words)
    command = words[1:] if words[:1] == ["--"] else words
    if not command:
        raise Refusal("no command to run", "name it after `--`: headway run -- torchrun train.py")
    from headway.exporter.launcher.child import hold_signals

    mask = hold_signals()
    profile = None if arguments.profile is None else _profile(arguments.profile)
    settings_of(AgentSettings, arguments, environment={})  # what was typed has to be right
    settings: AgentSettings | None = None
    try:
        settings = settings_of(AgentSettings, arguments)
    except SettingError as error:
        # What a job's environment holds keeps no training from starting.
        print(f"headway run: {error}; nothing is recorded", file=sys.stderr)
    from headway.exporter.launcher.run import main

    return main(settings, command, mask, profile)


def _profile(name: str) -> "Profile":
    """Return what to read the command's output with."""
    from headway.cli.log_profiles import described
    from headway.importing.formats import rules_for
    from headway.importing.names import TITLES

    if name in TITLES:
        return rules_for(name), None
    if name.endswith(".toml"):
        return described(Path(name))
    raise Refusal(
        f"there is no profile {name!r}",
        f"choose one of: {', '.join(TITLES)}; or name a TOML file",
    )
