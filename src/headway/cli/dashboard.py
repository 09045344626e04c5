"""`headway dashboard`: the pages."""

import argparse
from typing import Any

from headway.cli.options import add_settings, port_is_given, settings_of
from headway.settings import ClientSettings, DashboardSettings


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "dashboard",
        help="serve the pages",
        description="Serve the pages that show what the collector knows.",
    )
    add_settings(parser, DashboardSettings)
    add_settings(parser, ClientSettings)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop."""
    settings = settings_of(DashboardSettings, arguments)
    client = settings_of(ClientSettings, arguments)
    from headway.dashboard.server import main

    return main(settings, client, port_given=port_is_given(DashboardSettings, arguments))
