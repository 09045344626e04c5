"""`headway agent`: the node agent."""

import argparse
from typing import Any

from headway.cli.options import add_settings, port_is_given, settings_of
from headway.settings import AgentSettings


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "agent",
        help="ship this node's spools to the collector",
        description="Ship the spools of this node to the collector and delete what it "
        "acknowledged.",
    )
    add_settings(parser, AgentSettings)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ship until told to stop."""
    settings = settings_of(AgentSettings, arguments)
    from headway.exporter.agent.service import main

    return main(settings, port_given=port_is_given(AgentSettings, arguments))
