"""How checkpoints were written, as a table for a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from headway import wording
from headway.cli.tables import table_of

_MEGABYTE = 1_000_000


def print_writing(writing: Mapping[str, Any], console: Console) -> None:
    """Print it if there was anything to write or to resume from."""
    if not any(writing["saves"].values()):
        return
    table = table_of("Checkpoint writing", ">half within", ">95 % within", ">most")
    for title, name, form in (
        ("Training waited", "blocking_ns", wording.duration),
        ("of that, for the copy", "staging_ns", wording.duration),
        ("Written beside training", "background_ns", wording.duration),
        ("Between two saves", "interval_ns", wording.duration),
        ("Copied", "bytes_staged", megabytes),
        ("Written", "bytes_written", megabytes),
        ("Written per second", "bytes_per_second", megabytes),
    ):
        spread = writing[name]
        if spread["count"]:
            table.add_row(title, *(form(spread[key]) for key in ("p50", "p95", "max")))
    if table.row_count:
        console.print(table)
    table = table_of("Checkpoints", "")
    states = ", ".join(
        f"{wording.count(number)} {state}" for state, number in writing["saves"].items() if number
    )
    table.add_row("Saves", states)
    ratio = writing["write_to_interval"]
    if ratio["mean"] is not None:
        said = f"{wording.percent(ratio['mean'])}, at most {wording.percent(ratio['max'])}"
        table.add_row("Write time against the interval", said)
    if writing["highest_queue_depth"] is not None:
        table.add_row("Most saves under way at once", wording.count(writing["highest_queue_depth"]))
    if writing["lowest_memory"] is not None:
        table.add_row("Least memory available meanwhile", megabytes(writing["lowest_memory"]))
    if writing["highest_memory_pressure"] is not None:
        said = wording.percent(writing["highest_memory_pressure"])
        table.add_row("Most of the time waiting for memory", said)
    for resume in writing["fallbacks"]:
        said = f"{resume['checkpoint']} instead of {resume['requested']}"
        table.add_row(f"Fell back at {wording.when(resume['time'])}", said)
    for resume in writing["restarts_from_zero"]:
        said = f"although {resume['newest'] or resume['requested']} was there"
        table.add_row(f"Began from zero at {wording.when(resume['time'])}", said)
    console.print(table)


def megabytes(amount: int | None) -> str:
    """Return bytes as people read them: `5.4 MB`."""
    return wording.UNKNOWN if amount is None else f"{amount / _MEGABYTE:,.1f} MB"
