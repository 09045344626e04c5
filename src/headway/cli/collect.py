"""`headway collect`: the collector."""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headway.cli.options import add_settings, port_is_given, settings_of
from headway.cli.refusal import Refusal
from headway.settings import CollectorSettings

if TYPE_CHECKING:
    from headway.alerts.desk import Desk
    from headway.collector.service import Service


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
    from headway.collector.server import main

    return main(
        settings,
        port_given=port_is_given(CollectorSettings, arguments),
        alerting=_alerting(settings),
    )


def _alerting(settings: CollectorSettings) -> "Callable[[Service], Desk] | None":
    """Return what makes alerting for a service, or None where it is off."""
    from headway.alerts.desk import Desk
    from headway.alerts.engine import Engine
    from headway.alerts.evaluation import Sample
    from headway.alerts.site import DEFAULT
    from headway.cli.alert_site import site_of
    from headway.collector.ingest import Busy
    from headway.collector.published import published
    from headway.storage.alert_book import AlertBook, BookError

    if not settings.alerting:
        return None
    site = DEFAULT if settings.alerts_file is None else site_of(settings.alerts_file)
    path = settings.alerts_state or settings.database.with_suffix(".alerts.sqlite")
    try:
        book = AlertBook(path)
    except BookError as error:
        raise Refusal(str(error), "or name another file with --alerts-state") from error

    def of(service: "Service") -> Desk:
        def look() -> list[Sample] | None:
            try:
                found = published(service)
            except Busy:
                return None
            return [Sample(metric=name, labels=labels, value=v) for name, labels, v in found]

        engine = Engine(book, site, look, time.time, settings.dashboard_url)
        return Desk(engine, book, site, time.time)

    return of
