"""`headway storage`: copies of the database, and Parquet files out of it and back into one."""

import argparse
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.cli.asking import add_source, source
from headway.cli.options import add_settings, settings_of
from headway.cli.refusal import Refusal
from headway.settings import CollectorSettings

if TYPE_CHECKING:
    from headway.storage.store import EventStore


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "storage",
        help="back up, export or import the database",
        description="Copy everything that is stored: as a database file, which is restored by "
        "starting a collector on it, or as Parquet files.",
    )
    doing = parser.add_subparsers(dest="doing", metavar="WHAT", required=True)
    backup = doing.add_parser(
        "backup",
        help="copy the database into a new file",
        description="Copy the database into a new file while its collector runs, or with "
        "--database a closed one. The token needs the scope admin.",
    )
    backup.add_argument("file", metavar="FILE", type=Path, help="New file.")
    add_source(backup)
    backup.set_defaults(run=_backup)
    export = doing.add_parser(
        "export",
        help="write all tables as Parquet",
        description="Write every table as a Parquet file into a new folder, while its collector "
        "runs, or with --database from a closed file. The token needs the scope admin.",
    )
    export.add_argument("folder", metavar="DIR", type=Path, help="New folder.")
    add_source(export)
    export.set_defaults(run=_export)
    take = doing.add_parser(
        "import",
        help="take exported Parquet files into a database",
        description="Take what `headway storage export` wrote into a database file on which no "
        "collector runs; what it holds already stays, so it can be done again.",
    )
    take.add_argument("folder", metavar="DIR", type=Path, help="Folder of an export.")
    add_settings(take, CollectorSettings, only=("database",))
    take.set_defaults(run=_import)


def _backup(arguments: argparse.Namespace) -> int:
    path: Path = arguments.file
    _copy(arguments, path)
    print(f"{path}: {path.stat().st_size} bytes")
    return 0


def _copy(arguments: argparse.Namespace, path: Path) -> None:
    """Write a copy of what is to be asked into a new file."""
    from headway.storage.copying import CopyError

    database: Path | None = arguments.database
    try:
        if database is not None:
            with closing(_read(database)) as store:
                store.backup(path)
            return
        with source(arguments) as client:
            client.backup(path)
    except FileExistsError as error:
        raise Refusal(f"{str(path)!r} exists already", "name a new file") from error
    except OSError as error:
        raise Refusal(f"{str(path)!r} cannot be written: {error.strerror}") from error
    except CopyError as error:
        raise Refusal(str(error)) from error


def _export(arguments: argparse.Namespace) -> int:
    from headway.storage.copying import CopyError

    folder: Path = arguments.folder
    if folder.exists():
        raise Refusal(f"{str(folder)!r} exists already", "name a new folder")
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise Refusal(f"there is no folder {str(parent)!r}", "make it, or name another one")
    # Beside the export, where there is room for what is stored, and not in a small /tmp.
    with tempfile.TemporaryDirectory(prefix=".headway-export-", dir=parent) as beside:
        database: Path | None = arguments.database
        if database is None:
            database = Path(beside) / "copy.duckdb"
            _copy(arguments, database)
        try:
            with closing(_read(database)) as store:
                counts = store.export(folder)
        except CopyError as error:
            raise Refusal(str(error)) from error
    for name, count in counts.items():
        print(f"{folder / name}.parquet: {count} rows")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    from headway.storage.copying import CopyError
    from headway.storage.importing import import_folder
    from headway.storage.store import EventStore, StoreError

    settings = settings_of(CollectorSettings, arguments)
    if not arguments.folder.is_dir():
        raise Refusal(
            f"there is no folder {str(arguments.folder)!r}",
            "name one that `headway storage export` wrote",
        )
    try:
        with closing(EventStore.open(settings.database)) as store:
            taken = import_folder(store, arguments.folder)
    except (CopyError, StoreError) as error:
        raise Refusal(str(error)) from error
    print(
        f"{settings.database}: {taken.num_stored} records stored, {taken.num_duplicate} known "
        f"already, {taken.num_left_out} left out; {taken.num_derived} rows of ledgers"
    )
    return 0


def _read(path: Path) -> "EventStore":
    from headway.storage.store import EventStore, StoreError

    if not path.is_file():
        raise Refusal(f"there is no database file {str(path)!r}", "name one with --database FILE")
    try:
        return EventStore.read(path)
    except StoreError as error:
        raise Refusal(str(error)) from error
