"""Command line options derived from the settings, so that each is declared once."""

import argparse
import dataclasses
from collections.abc import Collection, Mapping
from typing import TypeVar

from headway.settings import Settings, load, options, sources

S = TypeVar("S", bound=Settings)


def add_settings(
    parser: argparse.ArgumentParser,
    declaration: type[Settings],
    only: Collection[str] | None = None,
) -> None:
    """Give the parser one option per setting, of `only` these where they are named.

    Not given means environment, file or default.
    """
    for option in options(declaration):
        if only is not None and option.name not in only:
            continue
        names = [name for name in (option.alias, option.variable) if name is not None]
        default = "" if option.default is None else f" Default: {option.default}."
        parser.add_argument(
            "--" + option.name.replace("_", "-"),
            dest=option.name,
            metavar=option.kind.__name__.upper(),
            help=f"{option.sentence}{default} Variable: {' or '.join(names)}.".replace("%", "%%"),
        )


def settings_of(
    declaration: type[S],
    arguments: argparse.Namespace,
    environment: Mapping[str, str] | None = None,
) -> S:
    """Return the settings of one process as the arguments, environment and file give them.

    `environment` is the process's own by default.

    Raises:
        SettingError: a value that does not fit.
    """
    names = {field.name for field in dataclasses.fields(declaration)}  # type: ignore[arg-type]
    given = {name: value for name, value in vars(arguments).items() if name in names}
    return load(declaration, given, environment)


def port_is_given(declaration: type[Settings], arguments: argparse.Namespace) -> bool:
    """Return whether somebody chose the port of a service, so that no other will do."""
    return arguments.port is not None or "port" in sources(declaration)
