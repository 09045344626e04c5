"""`headway collect`: the collector."""

import argparse
from typing import Any

from headway.cli.options import add_settings, port_is_given, settings_of
from headway.cli.refusal import Refusal
from headway.settings import CollectorSettings


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "collect",
        help="receive events, keep the ledgers, answer the API",
        description="Receive events over OTLP/HTTP, store them, keep the ledgers current and "
        "answer the read API and /metrics.",
    )
    add_settings(parser, CollectorSettings)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop."""
    settings = settings_of(CollectorSettings, arguments)
    if not 0 < settings.goodput_target < 1:
        raise Refusal(
            f"a goodput target of {settings.goodput_target} cannot be reached or missed",
            "give the share of time that is to become lasting progress, such as 0.9",
        )
    from headway.cli.alerting import alerting
    from headway.collector.server import main

    return main(
        settings,
        port_given=port_is_given(CollectorSettings, arguments),
        alerting=alerting(settings),
    )
