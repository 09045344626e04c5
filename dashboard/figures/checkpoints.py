"""The checkpoints of a run and how fresh they are."""

from collections.abc import Mapping
from datetime import tzinfo
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway import metrics
from headway.dashboard.figures.marks import mark_incidents
from headway.dashboard.figures.style import Report, local, styled, time_axis, unit_of
from headway.dashboard.lanes import highest
from headway.wording import duration

MOST_CORNERS = 500
"""Beyond, the teeth of a saw would be narrower than a pixel."""


def checkpoint_freshness(report: Report, zone: tzinfo) -> go.Figure:
    """Return the age of the newest durable checkpoint over time: a saw tooth, low is good."""
    corners = highest(freshness(report), MOST_CORNERS)
    unit, suffix = unit_of(max((age for _, age in corners), default=0))
    figure = go.Figure(
        go.Scatter(
            x=[local(time, zone) for time, _ in corners],
            y=[age / unit for _, age in corners],
            mode="lines",
            line={"color": metrics.category("checkpoint_save").colour, "width": 2},
            hovertext=[duration(age) for _, age in corners],
            hovertemplate="%{hovertext} old<br>%{x|%b %d %H:%M:%S}<extra></extra>",
        )
    )
    styled(figure, 260)
    mark_incidents(figure, report["incidents"], zone)
    figure.update_yaxes(title="Age", ticksuffix=f" {suffix}", rangemode="tozero", fixedrange=True)
    time_axis(figure, report, zone)
    return figure


def freshness(report: Report) -> list[tuple[int, int]]:
    """Return the corners (time, age) of the newest durable checkpoint's age.

    Checkpoints durable since 10 and 30 in a run seen at 35 give (10, 0) (30, 20) (30, 0) (35, 5).
    """
    ends = sorted(one["durable_since"] for one in durable(report))
    last = report["as_of"] if report["end"] is None else report["end"]
    ends = [end for end in ends if end < last]
    corners = []
    for begin, end in pairwise([*ends, last]):
        corners += [(begin, 0), (end, end - begin)]
    return corners


def durable(report: Report) -> list[Mapping[str, Any]]:
    """Return the checkpoints that held: neither failed nor revoked since."""
    return [
        one
        for one in report["checkpoints"]
        if one["durable_since"] is not None and one["state"] in ("claimed", "verified")
    ]
