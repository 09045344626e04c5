"""`headway sql`: one SELECT over the documented views."""

import argparse
import json
from pathlib import Path
from typing import Any

from headway.cli.asking import add_source, source
from headway.cli.refusal import Refusal


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "sql",
        help="ask the stored events with SQL",
        description="Answer one SELECT or EXPLAIN over the documented views and the table events; "
        "without SQL, list what can be read. Nothing can be changed and no file can be reached.",
    )
    parser.add_argument("statement", metavar="SQL", nargs="?", help="One SELECT or EXPLAIN.")
    parser.add_argument("--limit", type=int, metavar="ROWS", help="Most rows; default: 10000.")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="Print the object of the read API.")
    form.add_argument("--csv", action="store_true", help="Print comma-separated values.")
    form.add_argument(
        "--arrow", type=Path, metavar="FILE", help="Write the rows into an Arrow IPC stream."
    )
    add_source(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the answer."""
    from headway.cli.rows_text import print_csv, print_rows, warn_cut

    statement: str | None = arguments.statement
    with source(arguments) as client:
        if statement is None:
            _print_views(client.views(), arguments)
            return 0
        if arguments.arrow is not None:
            table = client.sql_table(statement, arguments.limit)
            warn_cut((table.schema.metadata or {}).get(b"truncated") == b"true", table.num_rows)
            _write(arguments.arrow, table)
            return 0
        found = client.sql(statement, arguments.limit)
    if arguments.json:
        print(json.dumps(found, sort_keys=True))
        return 0
    if arguments.csv:
        print_csv(found)
    else:
        print_rows(found)
    warn_cut(found["truncated"], len(found["rows"]))
    return 0


def _print_views(views: list[dict[str, Any]], arguments: argparse.Namespace) -> None:
    from headway.cli.tables import console_for, table_of

    if arguments.json:
        print(json.dumps(views, sort_keys=True))
        return
    console = console_for(None)
    for view in views:
        table = table_of("Column", "Meaning", title=view["name"])
        for column in view["columns"]:
            table.add_row(column["name"], column["sentence"])
        console.print(table)


def _write(path: Path, table: Any) -> None:
    import pyarrow  # type: ignore[import-untyped]  # ships no types

    try:
        with (
            pyarrow.OSFile(str(path), "wb") as file,
            pyarrow.ipc.new_stream(file, table.schema) as writer,
        ):
            writer.write_table(table)
    except OSError as error:
        raise Refusal(f"cannot write {str(path)!r}: {error}", "choose another file") from error
    print(f"wrote {table.num_rows} rows to {path}")
