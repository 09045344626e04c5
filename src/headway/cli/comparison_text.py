"""A comparison in a terminal."""

from collections.abc import Mapping
from typing import Any

from headway.cli.tables import console_for, print_whole, table_of
from headway.comparison import words
from headway.wording import duration

_MOST_SETTINGS = 50


def print_comparison(found: Mapping[str, Any]) -> None:
    """Print both sides, their figures, what makes them unfair, and the settings that differ."""
    console = console_for(None)
    for letter, side in (("A", found["one"]), ("B", found["other"])):
        runs = len(side["runs"])
        of = "" if runs == 1 else f", of {runs} runs"
        console.print(f"{letter}: {side['name']}: {duration(side['elapsed_ns'])}{of}")
    table = table_of("", ">A", ">B", ">A - B", ">by chance from ... to", "A is")
    for one in found["figures"]:
        if words.is_told(one):
            unit = one["unit"]
            table.add_row(
                one["title"],
                words.value(one["one"], unit),
                words.value(one["other"], unit),
                words.difference(one["difference"], unit),
                words.chance(one["difference"], unit),
                words.verdict(one),
            )
    print_whole(console, table)
    console.print(words.CHANCE)
    for doubt in found["doubts"]:
        console.print(f"Careful: {doubt}")
    if found["settings"]:
        settings = table_of("Settings that differ", "A", "B")
        for one in found["settings"][:_MOST_SETTINGS]:
            name = one["field"] if one["name"] is None else f"{one['field']}.{one['name']}"
            settings.add_row(name, *(_text(one[when]) for when in ("after", "before")))
        console.print(settings)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
