"""Failures of nodes by day, in plain HTML: a row per node, a column per UTC day.

Days that are alike stand in one piece, so that a year of many nodes stays small.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import groupby
from typing import Any

from headway.dashboard import markup
from headway.dashboard.palette import EDGE
from headway.wording import count, counted

COLOURS: Mapping[str, str] = {
    "no failure": "rgba(86,180,233,0.30)",
    "1": "#F0E442",
    "2": "#E69F00",
    "3 or more": "#9E2A00",
}
"""What a cell's colour says of its failures; an empty cell says nothing."""
_SECOND = 1_000_000_000
_MOST_DAYS_SAID, _MOST_DAYS_NUMBERED = 7, 45
STYLE = f"""<style>
.hw-days {{ display: grid; grid-template-columns: fit-content(40%) 1fr;
  column-gap: 0.6rem; font-size: 0.75rem; line-height: 1.15rem; margin: 0 0 0.5rem; }}
.hw-days a {{ min-width: 0; color: inherit; text-align: right; white-space: nowrap;
  overflow: hidden; text-overflow: ellipsis; text-decoration: none; }}
.hw-days a:hover, .hw-days a:focus {{ text-decoration: underline; }}
.hw-days div {{ display: grid; }}
.hw-days div span {{ margin: 0 0 1px; min-width: 0; text-align: center; font-size: 0.65rem; }}
.hw-days .hw-fine {{ background-repeat: repeat-x; background-image: linear-gradient(to right,
  {COLOURS["no failure"]} calc(100% - 1px), transparent 0); }}
.hw-days .hw-failed {{ border-right: 1px solid transparent; background-clip: padding-box;
  outline: 1px solid {EDGE}; outline-offset: -1px; color: #1F2933; }}
.hw-days .hw-many {{ color: #FFFFFF; }}
.hw-days .hw-when span {{ text-align: left; overflow: hidden; white-space: nowrap;
  font-size: 0.75rem; }}
</style>"""


def html(found: Mapping[str, Any], label: str) -> str:
    """Return the failures of each node by day; a day on which nobody looked is empty.

    A node's name leads to its page, a day with failures says how many.
    """
    days = [datetime.fromtimestamp(day // _SECOND, tz=UTC) for day in found["days"]]
    columns = f"grid-template-columns:repeat({len(days)},minmax(0,1fr))"
    rows = "".join(
        f"{markup.link(markup.address('hardware', node=one['node']), one['node']).html}"
        f'<div style="{columns}">{"".join(_cells(one["failures"], days))}</div>'
        for one in found["nodes"]
    )
    return (
        f'<div class="hw-days" role="group" aria-label="{escape(label)}">{rows}'
        f'<span></span><div class="hw-when" aria-hidden="true" style="{columns}">'
        f"{''.join(_marks(days))}</div></div>"
    )


def _cells(failures: Sequence[int | None], days: Sequence[datetime]) -> Iterator[str]:
    place = 0
    for number, alike in groupby(failures):
        length = len(list(alike))
        if number == 0:
            yield (
                f'<span class="hw-fine" style="grid-column:{place + 1}/span {length};'
                f'background-size:calc(100%/{length}) 100%"></span>'
            )
        elif number is not None:
            for column in range(place, place + length):
                yield _failed(number, column, days)
        place += length


def _failed(number: int, column: int, days: Sequence[datetime]) -> str:
    top = len(COLOURS) - 1
    colour = list(COLOURS.values())[min(number, top)]
    kind = "hw-failed hw-many" if number >= top else "hw-failed"
    said = f"{days[column]:%Y-%m-%d}: {counted(number, 'failure')}"
    text = count(number) if len(days) <= _MOST_DAYS_NUMBERED else ""
    return (
        f'<span class="{kind}" style="grid-column:{column + 1};background-color:{colour}" '
        f'title="{said}">{text}</span>'
    )


def _marks(days: Sequence[datetime]) -> Iterator[str]:
    """Say the days that have room for it, from the first on."""
    step = -(-len(days) // _MOST_DAYS_SAID)
    for column in range(0, max(len(days) - step, 0) + 1, step):
        yield f'<span style="grid-column:{column + 1}/span {step}">{days[column]:%b %d}</span>'
