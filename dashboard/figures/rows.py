"""A chart of the rows of any query, where their shape allows one."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway.dashboard.figures.style import styled
from headway.dashboard.palette import EDGE

Found = Mapping[str, Any]
"""The answer to a query: columns with their types, and rows."""
MOST_BARS = 40
MOST_POINTS = 1_000
_MOST_LINES = 6
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_NUMBERS = ("int", "uint", "float", "double", "decimal")
_TIMES = ("timestamp", "date")
_WORDS = ("string", "large_string", "bool")


def chart(found: Found) -> go.Figure | None:
    """Return lines over time, bars by name, or points of two numbers; None for other shapes.

    The first column of times or of words is what the numbers are drawn over.
    """
    rows = found["rows"][:MOST_POINTS]
    times, words, numbers = (_places(found, kinds) for kinds in (_TIMES, _WORDS, _NUMBERS))
    if len(rows) < 2 or not numbers:
        return None
    if times and (not words or times[0] < words[0]) and _differ(rows, times[0]):
        return _lines(found, rows, times[0], numbers[:_MOST_LINES])
    if words and _differ(rows, words[0]):
        return _bars(found, rows, words[0], numbers[0])
    if len(numbers) > 1 and not words and not times:
        return _points(found, rows, numbers[0], numbers[1])
    return None


def _places(found: Found, kinds: Sequence[str]) -> list[int]:
    return [
        place
        for place, column in enumerate(found["columns"])
        if column["type"].startswith(tuple(kinds))
    ]


def _differ(rows: Sequence[Sequence[Any]], place: int) -> bool:
    """Whether every row has a value of its own there, so that a mark stands for one row."""
    values = [row[place] for row in rows]
    return None not in values and len({*values}) == len(values)


def _lines(
    found: Found, rows: Sequence[Sequence[Any]], time: int, numbers: Sequence[int]
) -> go.Figure:
    figure = go.Figure()
    # Amounts of different size share no axis: what is drawn is the first column and its like.
    like = [place for place in numbers if _unit(found, place) == _unit(found, numbers[0])]
    ordered = sorted(rows, key=lambda row: row[time])
    for place, colour in zip(like, _COLOURS, strict=False):
        figure.add_scatter(
            name=_name(found, place),
            x=[row[time] for row in ordered],
            y=[row[place] for row in ordered],
            mode="lines+markers" if len(rows) <= 60 else "lines",
            line={"color": colour, "width": 2},
        )
    styled(figure, 320, showlegend=len(like) > 1)
    figure.update_yaxes(
        title_text=_name(found, like[0]) if len(like) == 1 else None, rangemode="tozero"
    )
    return figure


def _bars(found: Found, rows: Sequence[Sequence[Any]], word: int, number: int) -> go.Figure:
    shown = rows[:MOST_BARS]
    figure = go.Figure()
    figure.add_bar(
        x=[row[number] for row in shown],
        y=[_short(str(row[word])) for row in shown],
        orientation="h",
        marker={"color": _COLOURS[0], "line": {"color": EDGE}},
    )
    styled(figure, 90 + 26 * len(shown))
    figure.update_xaxes(title_text=_name(found, number))
    figure.update_yaxes(autorange="reversed", type="category")
    return figure


def _points(found: Found, rows: Sequence[Sequence[Any]], across: int, up: int) -> go.Figure:
    figure = go.Figure()
    figure.add_scatter(
        x=[row[across] for row in rows],
        y=[row[up] for row in rows],
        mode="markers",
        marker={"color": _COLOURS[0], "size": 7, "line": {"color": EDGE, "width": 1}},
    )
    styled(figure, 360)
    figure.update_xaxes(title_text=_name(found, across))
    figure.update_yaxes(title_text=_name(found, up))
    return figure


def title(name: str) -> str:
    """Return the name of a column for people: `lost_gpu_hours` reads `lost GPU hours`."""
    return " ".join("GPU" if word == "gpu" else word for word in name.split("_"))


def _name(found: Found, place: int) -> str:
    return title(str(found["columns"][place]["name"]))


def _unit(found: Found, place: int) -> str:
    """Return what a column's name ends with, such as hours: columns that share it share an axis."""
    return str(found["columns"][place]["name"]).rpartition("_")[2]


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}\u2026"
