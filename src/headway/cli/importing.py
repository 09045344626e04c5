"""`headway import`: what was recorded elsewhere or earlier goes to the collector."""

import argparse
import json
import logging
from pathlib import Path
from typing import Any

from headway.cli import import_infinitehbd, import_logs, kernel_log
from headway.cli.options import add_settings, settings_of
from headway.cli.refusal import Refusal
from headway.settings import AgentSettings
from headway.wording import counted

_USED = ("endpoint", "token", "ca_file", "batch")


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "import",
        help="send what was recorded without an agent to the collector",
        description="Send what was recorded without an agent to the collector.",
    )
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    spool = formats.add_parser(
        "spool",
        help="spools of the recorder",
        description="Send every spool in a folder to the collector, and every batch that an agent "
        "set aside there. Nothing is deleted, and what the collector has already is not counted "
        "twice.",
    )
    spool.add_argument("folder", metavar="DIR", type=Path, help="Folder of the spools.")
    spool.add_argument("--json", action="store_true", help="Print one JSON object.")
    add_settings(spool, AgentSettings, only=_USED)
    spool.set_defaults(run=run)
    import_logs.add(formats)
    kernel_log.add(formats)
    import_infinitehbd.add(formats)


def run(arguments: argparse.Namespace) -> int:
    """Ship the spools of a folder."""
    settings = settings_of(AgentSettings, arguments)
    from headway.exporter.agent.spool_import import import_spools
    from headway.exporter.shipping import REFUSED_FOLDER, NotTakenError, Shipper

    logging.basicConfig(format="%(levelname)s: %(message)s")
    folder = arguments.folder.resolve()
    if not folder.is_dir():
        raise Refusal(
            f"there is no folder {str(folder)!r}",
            "name the folder that the recorder said it writes to (HEADWAY_SPOOL)",
        )
    shipper = Shipper(
        endpoint=settings.endpoint,
        token=settings.token,
        refused=folder / REFUSED_FOLDER,
        ca_file=settings.ca_file,
    )
    try:
        done = import_spools(folder, shipper, settings.batch)
    except NotTakenError as error:
        raise Refusal(str(error), "then run this import again; nothing is lost") from error
    finally:
        shipper.close()
    if not done.producers and not done.runs and not done.unreadable:
        raise Refusal(
            f"there is no spool in {str(folder)!r}",
            "name the folder whose sub-folders hold a file named header, one per producer",
        )
    if arguments.json:
        found = {
            "producers": done.producers,
            "runs": sorted(done.runs),
            "acknowledged": done.acknowledged,
            "refused": done.refused,
            "damaged_blocks": done.damaged_blocks,
            "unreadable": done.unreadable,
        }
        print(json.dumps(found, sort_keys=True))
        return 0
    print(
        f"the collector at {shipper.endpoint} has {counted(done.acknowledged, 'record')} of "
        f"{counted(done.producers, 'producer')}; the spools in {folder} are kept"
    )
    for name in sorted(done.runs):
        print(f"see: headway report {name}")
    for amount, what in (
        (done.damaged_blocks, "damaged blocks were skipped"),
        (done.refused, f"records were refused and are kept in {folder / REFUSED_FOLDER}"),
        (len(done.unreadable), f"could not be read: {', '.join(done.unreadable)}"),
    ):
        if amount:
            print(f"{amount} {what}")
    return 0
