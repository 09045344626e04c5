"""Commands that ask: a collector, or a database file that no collector holds any more."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headway.cli.options import add_settings, settings_of
from headway.cli.refusal import Refusal
from headway.settings import ClientSettings

if TYPE_CHECKING:
    import httpx

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
    from headway.storage.client import CollectorClient, CollectorError

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
        raise Refusal(f"there is no database file {str(path)!r}", "name one with --database FILE")
    try:
        return ClosedFile(path)
    except StoreError as error:
        raise Refusal(str(error), "while a collector runs, ask it: leave --database out") from error
