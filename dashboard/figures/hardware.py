"""Failures of nodes by day."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway.dashboard.figures.fleet import shortened
from headway.dashboard.figures.style import SECOND, styled
from headway.wording import counted

COLOURS: Mapping[str, str] = {
    "no failure": "rgba(86,180,233,0.30)",
    "1": "#F0E442",
    "2": "#E69F00",
    "3 or more": "#9E2A00",
}
"""What a cell's colour says of its failures; an empty cell says nothing."""
_TOP = len(COLOURS) - 1
_ROW = 18


def heatmap(found: Mapping[str, Any]) -> go.Figure:
    """Return a row per node and a column per UTC day; a day on which nobody looked is empty."""
    days = [datetime.fromtimestamp(day // SECOND, tz=UTC) for day in found["days"]]
    nodes = found["nodes"]
    figure = go.Figure(
        go.Heatmap(
            x=[f"{day:%Y-%m-%d}" for day in days],
            y=[shortened(one["node"]) for one in nodes],
            z=[
                [None if number is None else min(number, _TOP) for number in one["failures"]]
                for one in nodes
            ],
            text=[
                [
                    _cell(one["node"], day, number)
                    for day, number in zip(days, one["failures"], strict=True)
                ]
                for one in nodes
            ],
            hovertemplate="%{text}<extra></extra>",
            hoverongaps=False,
            colorscale=_scale(),
            zmin=-0.5,
            zmax=_TOP + 0.5,
            xgap=1,
            ygap=1,
            showscale=False,
        )
    )
    styled(figure, _ROW * len(nodes) + 60)
    figure.update_yaxes(
        autorange="reversed", showgrid=False, fixedrange=True, type="category", dtick=1
    )
    figure.update_xaxes(
        showgrid=False, fixedrange=True, type="date", nticks=8, tickformat="%b %d", tickangle=0
    )
    return figure


def _scale() -> list[tuple[float, str]]:
    """Return a step of equal width for each colour."""
    found: list[tuple[float, str]] = []
    for place, colour in enumerate(COLOURS.values()):
        found += [(place / len(COLOURS), colour), ((place + 1) / len(COLOURS), colour)]
    return found


def _cell(node: str, day: datetime, number: int | None) -> str:
    said = "" if number is None else counted(number, "failure")
    return f"<b>{shortened(node)}</b><br>{day:%Y-%m-%d}: {said}"
