"""Incidents as marks on the top edge of any figure over time, so that cause and effect meet."""

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway.dashboard.figures.style import local
from headway.dashboard.palette import INCIDENT, NEUTRAL
from headway.wording import plain

MOST = 300
_MOST_LINES = 12
"""Beyond, lines would hide what they mark; the marks on the edge stay."""
_MOST_LARGE = 40
_EDGE_AXIS = "y9"
"""An axis of its own from 0 to 1, so that a mark lies on the edge whatever the figure shows."""


def mark_incidents(figure: go.Figure, incidents: Sequence[Mapping[str, Any]], zone: tzinfo) -> None:
    """Mark the newest incidents on a figure whose x axis is time; a thin line leads down."""
    shown = incidents[-MOST:]
    if not shown:
        return
    xs: list[str | None] = []
    ys: list[float | None] = []
    for one in shown:
        moment = local(one["opened"], zone)
        xs += [moment, moment, None]
        ys += [0.0, 1.0, None]
    common = {"yaxis": _EDGE_AXIS, "showlegend": False}
    if len(shown) <= _MOST_LINES:
        figure.add_scatter(
            x=xs,
            y=ys,
            mode="lines",
            line={"color": NEUTRAL, "width": 1, "dash": "dot"},
            hoverinfo="skip",
            **common,
        )
    figure.add_scatter(
        name="Incident",
        x=[local(one["opened"], zone) for one in shown],
        y=[1.0] * len(shown),
        mode="markers",
        cliponaxis=False,
        marker={
            "symbol": "triangle-down",
            "size": 8 if len(shown) <= _MOST_LARGE else 5,
            "color": INCIDENT,
        },
        hovertext=[f"Incident {one['number']}: {plain(one['cause'])}" for one in shown],
        hovertemplate="%{hovertext}<br>%{x|%b %d %H:%M:%S}<extra></extra>",
        **common,
    )
    figure.update_layout(
        yaxis9={
            "overlaying": "y",
            "range": [0, 1],
            "visible": False,
            "fixedrange": True,
        }
    )
