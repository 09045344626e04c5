"""Commands that ask: a collector, or a database file that no collector holds any more."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headway.cli.options import add_settings, settings_of
from headway.cli.refusal import Refusal
from headway.settings import ClientSettings

_NAME_ONE = "name the database file of a collector with --database FILE"

if TYPE_CHECKING:
    import httpx

    from headway.alerts.notice_log import NoticeLog
    from headway.storage.client import CollectorClient


def add_source(parser: argparse.ArgumentParser) -> None:
    """Give a command its options of whom to ask."""
    add_settings(parser, ClientSettings)
    parser.add_argument(
        "--database",
        type=Path,
        metavar="FILE",
        help="Read this database file instead, while no collector runs on it.",
    )


@contextmanager
def source(arguments: argparse.Namespace) -> Iterator["CollectorClient"]:
    """Give a client of what is to be asked; what it cannot answer is a refusal."""
    from headway.storage.client import CollectorClient
    from headway.storage.collector_errors import CollectorError

    path: Path | None = arguments.database
    settings = settings_of(ClientSettings, arguments)
    try:
        with CollectorClient(settings, None if path is None else _closed(path)) as client:
            yield client
    except CollectorError as error:
        raise Refusal(error.sentence, error.next_step) from error


def _closed(path: Path) -> "httpx.BaseTransport":
    from headway.collector.closed import ClosedFile
    from headway.storage.store import StoreError

    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is not there"
        raise Refusal(f"{str(path)!r} {what}", _NAME_ONE)
    try:
        return ClosedFile(path, _notices(path))
    except StoreError as error:
        raise _refusal(path, error) from error


def _notices(path: Path) -> "NoticeLog | None":
    """Return what alerting told while there was a collector, where a book of it lies beside."""
    from headway.alerts.notice_log import NoticeLog
    from headway.storage.alert_book import AlertBook, BookError, book_of

    try:
        return NoticeLog(AlertBook(book_of(path), closed=True))
    except BookError:
        return None


def _refusal(path: Path, error: Exception) -> Refusal:
    """Return why a file cannot be read, as a look at it tells, and what to do."""
    from headway.storage.probe import State, probe

    found = probe(path)
    match found.state:
        case State.HELD:
            held = f"{str(path)!r} is held by another process, as by a collector that runs"
            return Refusal(held, "ask that collector: leave --database out")
        case State.USABLE:
            return Refusal(str(error), _NAME_ONE)
        case State.NEWER_SCHEMA:
            return Refusal(found.words, "upgrade headway to read it")
        case State.DAMAGED_WAL:
            return Refusal(found.words, found.next_step)
    return Refusal(found.words, _NAME_ONE)
