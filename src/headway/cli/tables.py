"""Consoles and tables of the commands that print something for people."""

from typing import IO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

_NARROWEST = 80
_WIDEST = 1_000


def console_for(file: IO[str] | None) -> Console:
    """Return a console on a file, or on the standard output."""
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    # Piped into a file the width is whatever the environment says; a table must stay readable.
    return (
        console
        if console.width >= _NARROWEST
        else Console(file=file, highlight=False, markup=False, emoji=False, width=_NARROWEST)
    )


def table_of(*headings: str, title: str | None = None) -> Table:
    """Return an empty table; a heading that begins with `>` is a column of numbers."""
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(
            heading.removeprefix(">"),
            justify="right" if heading.startswith(">") else "left",
            no_wrap=place == 0,  # names are copied into the next command
        )
    return table


def print_whole(console: Console, table: Table) -> None:
    """Print a table as wide as its cells are; from then on the console has that width.

    A terminal that is narrower breaks the lines; within columns, numbers would be cut or stacked.
    """
    wanted = Measurement.get(console, console.options.update(width=_WIDEST), table).maximum
    console.width = max(console.width, wanted)
    console.print(table)
