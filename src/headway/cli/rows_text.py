"""Rows of a query for people and for programs that read text."""

import csv
import json
import sys
from collections.abc import Mapping
from typing import Any

from headway.cli.tables import console_for, table_of

_NUMERIC = ("int", "uint", "float", "double", "decimal")


def print_rows(found: Mapping[str, Any]) -> None:
    """Print an answer as a table; numbers stand right."""
    headings = [
        f">{column['name']}" if column["type"].startswith(_NUMERIC) else column["name"]
        for column in found["columns"]
    ]
    table = table_of(*headings)
    for row in found["rows"]:
        table.add_row(*map(_text, row))
    console_for(None).print(table)


def print_csv(found: Mapping[str, Any]) -> None:
    """Print an answer as comma-separated values with a line of names."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(column["name"] for column in found["columns"])
    writer.writerows(found["rows"])


def warn_cut(truncated: bool, num_rows: int) -> None:
    """Say on the standard error where rows are missing."""
    if truncated:
        print(f"headway: only the first {num_rows} rows; --limit asks for more", file=sys.stderr)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.3g}"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
