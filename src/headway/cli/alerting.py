"""Puts alerting beside a collector: the site's file, the book, the look at what is published."""

from collections.abc import Callable
from pathlib import Path

from headway.alerts.desk import Desk
from headway.alerts.engine import Engine
from headway.alerts.evaluation import Sample
from headway.alerts.handover import Handover
from headway.alerts.site import DEFAULT, Site, SiteError, site
from headway.alerts.sounding import asked
from headway.cli.refusal import Refusal
from headway.collector.ingest import Busy
from headway.collector.published import published
from headway.collector.service import Service
from headway.settings import CollectorSettings
from headway.storage.alert_book import AlertBook, BookError, book_of

_SECOND = 1e9


def site_of(path: Path | None) -> Site:
    """Return what an alerts file says, or what holds without one.

    Raises:
        Refusal: a file that cannot be read, or says what cannot be used.
    """
    if path is None:
        return DEFAULT
    try:
        return site(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(
            f"cannot read the alerts file {str(path)!r}: {error}",
            "name another one, or leave it out to have all alerts in the log",
        ) from error
    except SiteError as error:
        raise Refusal(f"{path}: {error}", "correct the file; docs/alerts.md shows one") from error


def alerting(settings: CollectorSettings) -> Callable[[Service], Desk] | None:
    """Return what makes alerting for a service, or None where it is off.

    Raises:
        Refusal: an alerts file or a file of the book that cannot be used.
    """
    if not settings.alerting:
        return None
    told = site_of(settings.alerts_file)
    path = settings.alerts_state or book_of(settings.database)
    try:
        book = AlertBook(path)
    except BookError as error:
        raise Refusal(str(error), "or name another file with --alerts-state") from error
    dashboard = settings.dashboard_url
    address = settings.alertmanager
    handover = None if address is None else Handover(address, dashboard)
    return lambda service: desk(service, book, told, dashboard, handover)


def desk(
    service: Service,
    book: AlertBook,
    told: Site,
    dashboard: str,
    handover: Handover | None = None,
) -> Desk:
    """Return alerting over what a collector publishes, by the collector's clock."""

    wanted = asked(told.rules.values())

    def look() -> list[Sample] | None:
        try:
            found = published(service, wanted)
        except Busy:  # the ledgers are being rebuilt
            return None
        return [Sample(metric=name, labels=labels, value=value) for name, labels, value in found]

    def clock() -> float:
        return service.clock() / _SECOND

    engine = Engine(book, told, look, clock, dashboard, handover=handover)
    return Desk(engine, book, told, clock)
