"""Bars lying in rows, in plain HTML: what a page shows first needs nothing that has to start.

The browser takes most of a second to start plotly. These bars are there with the words around them,
wrap on a narrow screen, and explain themselves to a mouse, a finger, a keyboard and a voice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from headway.dashboard.palette import EDGE, GRID

STYLE = f"""<style>
ul.hw-bars {{ display: grid; grid-template-columns: fit-content(48%) 1fr; list-style: none;
  margin: 0 0 0.5rem; padding: 0 0.8rem 0 0; font-size: 0.8rem; line-height: 1.15; }}
ul.hw-bars li {{ display: grid; grid-column: 1 / -1; grid-template-columns: subgrid;
  column-gap: 0.5rem; align-items: center; position: relative; min-height: 1.85rem; margin: 0;
  padding: 0; font-size: inherit; }}
.hw-bars .hw-name {{ text-align: right; overflow-wrap: anywhere; }}
.hw-bars .hw-track {{ position: relative; align-self: stretch; }}
.hw-bars.hw-shares .hw-track {{ background: repeating-linear-gradient(to right, {GRID} 0 1px,
  transparent 1px 20%); border-right: 1px solid {GRID}; }}
.hw-bars .hw-part {{ position: absolute; top: 14%; bottom: 14%; outline: 1px solid {EDGE}; }}
.hw-bars .hw-hatched {{ background-image: repeating-linear-gradient(45deg,
  rgba(255,255,255,0.75) 0 1.5px, transparent 1.5px 6px); }}
.hw-bars .hw-amount {{ position: absolute; top: 50%; transform: translateY(-50%);
  white-space: nowrap; font-size: 0.7rem; padding: 0 0.35rem; }}
.hw-bars .hw-tip {{ position: absolute; z-index: 10; top: calc(100% - 0.2rem); left: 0;
  width: max-content; max-width: min(30rem, 100%); box-sizing: border-box;
  padding: 0.4rem 0.6rem; border: 1px solid {EDGE}; border-radius: 4px; line-height: 1.35;
  opacity: 0; visibility: hidden; pointer-events: none; }}
.hw-bars li:hover .hw-tip, .hw-bars li:focus .hw-tip {{ opacity: 1; visibility: visible; }}
ul.hw-bars .hw-axis {{ min-height: 1.2rem; }}
.hw-bars .hw-axis .hw-track {{ background: none; border: none; }}
.hw-bars .hw-axis .hw-track span {{ position: absolute; transform: translateX(-50%);
  white-space: nowrap; }}
</style>"""
_MARKS = (0, 20, 40, 60, 80, 100)
_ROOM = 0.4
"""Part of the width that words need beside a bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a bar; where it begins and how wide it is are shares of the widest bar's width."""

    begin: float
    width: float
    colour: str
    hatched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A bar with its name, `share` in bold beside it, the `amount` at its end, and its meaning."""

    name: str
    parts: Sequence[Part]
    meaning: Sequence[str]
    """Lines that are read when one points at the row."""
    share: str = ""
    amount: str = ""


def html(rows: Sequence[Row], label: str, *, panel: str, shares: bool = False) -> str:
    """Return the bars; `label` says what there is to see, `panel` is the colour behind meanings.

    Bars that are `shares` of one whole get an axis in percent; others leave room for amounts.
    """
    wide = 1.0 if shares else 1.0 - _ROOM / 2
    body = "".join(_row(row, wide, panel) for row in rows)
    kind = "hw-bars hw-shares" if shares else "hw-bars"
    axis = _AXIS if shares else ""
    return f'<ul class="{kind}" aria-label="{escape(label)}">{body}{axis}</ul>'


def _row(row: Row, wide: float, panel: str) -> str:
    share = f" <b>{escape(row.share)}</b>" if row.share else ""
    parts = "".join(
        f'<span class="hw-part{" hw-hatched" if part.hatched else ""}" '
        f'style="left:{100 * wide * part.begin:.3f}%;width:{100 * wide * part.width:.3f}%;'
        f'background-color:{part.colour}"></span>'
        for part in row.parts
    )
    tip = "<br>".join(map(escape, row.meaning))
    return (
        f'<li tabindex="0"><span class="hw-name">{escape(row.name)}{share}</span>'
        f'<span class="hw-track">{parts}{_amount(row, wide)}'
        f'<span class="hw-tip" style="background:{panel}"><b>{escape(row.name)}</b><br>{tip}</span>'
        "</span></li>"
    )


def _amount(row: Row, wide: float) -> str:
    """Return the amount beside the bar, which may be too thin to be seen."""
    if not row.amount:
        return ""
    begin = wide * min(part.begin for part in row.parts)
    end = wide * max(part.begin + part.width for part in row.parts)
    place = (
        f"left:{100 * end:.3f}%"
        if 1.0 - end >= _ROOM / 2 or begin < 1.0 - end
        else f"right:{100 * (1.0 - begin):.3f}%"
    )
    return f'<span class="hw-amount" style="{place}">{escape(row.amount)}</span>'


_AXIS = (
    '<li class="hw-axis" aria-hidden="true"><span></span><span class="hw-track">'
    + "".join(f'<span style="left:{mark}%">{mark} %</span>' for mark in _MARKS)
    + "</span></li>"
)
