"""What all figures share: their look, their time axis and their units."""

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway.dashboard.palette import GRID

Report = Mapping[str, Any]
Interval = Mapping[str, Any]

MILLISECOND = 1_000_000
SECOND = 1_000 * MILLISECOND


def unit_of(ns: int) -> tuple[int, str]:
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if ns >= 2 * size * SECOND:
            return size * SECOND, name
    return SECOND, "s"


def local(ns: int, zone: tzinfo) -> str:
    """Return a time as plotly wants it: without a zone, already in the reader's."""
    return datetime.fromtimestamp(ns / SECOND, tz=zone).replace(tzinfo=None).isoformat()


def time_axis(figure: go.Figure, report: Report, zone: tzinfo) -> None:
    last = report["as_of"] if report["end"] is None else report["end"]
    figure.update_xaxes(
        type="date",
        range=[local(report["start"], zone), local(last, zone)],
        gridcolor=GRID,
        nticks=6,
        tickangle=0,
        fixedrange=True,
    )


def styled(figure: go.Figure, height: int, **layout: Any) -> None:
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 16, "t": 8, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        hoverlabel={"align": "left"},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "traceorder": "normal"},
        **({"showlegend": False} | layout),
    )
    figure.update_xaxes(automargin=True, gridcolor=GRID, zeroline=False)
    figure.update_yaxes(automargin=True, gridcolor=GRID, zeroline=False)
