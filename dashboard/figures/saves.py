"""Checkpoints written beside the training: whether a write fits between two saves."""

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway import metrics
from headway.dashboard.figures.marks import mark_incidents
from headway.dashboard.figures.style import Report, local, styled, time_axis, unit_of
from headway.dashboard.lanes import thinned
from headway.dashboard.palette import NEUTRAL
from headway.wording import counted, duration

MOST = 1_000
_FEW_TICKS = 4


def write_times(report: Report, zone: tzinfo) -> go.Figure:
    """Return, for each save, the write in the background, the wait, and the time to the next."""
    rows = thinned(_rows(report["checkpoints"]), MOST)
    unit, suffix = unit_of(max((row[field] or 0 for row in rows for field in _LINES), default=0))
    figure = go.Figure()
    for field, (name, colour, dash) in _LINES.items():
        some = [row for row in rows if row[field] is not None]
        figure.add_scatter(
            name=name,
            x=[local(row["scheduled"], zone) for row in some],
            y=[row[field] / unit for row in some],
            mode="lines+markers" if len(some) < 60 else "lines",
            line={"color": colour, "width": 2, "dash": dash},
            marker={"size": 5},
            hovertext=[f"{name}: {duration(row[field])}, step {row['step']:,}" for row in some],
            hovertemplate="%{hovertext}<br>%{x|%b %d %H:%M:%S}<extra></extra>",
        )
    styled(figure, 260, showlegend=True)
    figure.update_yaxes(ticksuffix=f" {suffix}", rangemode="tozero", fixedrange=True)
    mark_incidents(figure, report["incidents"], zone)
    time_axis(figure, report, zone)
    return figure


_LINES: Mapping[str, tuple[str, str, str]] = {
    "interval": ("Time to the next save", NEUTRAL, "dot"),
    "background": (
        "Write in the background",
        metrics.category("checkpoint_load").colour,
        "solid",
    ),
    "blocking": ("Training waited", metrics.category("checkpoint_save").colour, "solid"),
}


def _rows(saves: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    known = [save for save in saves if save["scheduled"] is not None]
    following = {
        id(save): after["scheduled"] - save["scheduled"]
        for save, after in pairwise(known)
        if after["attempt"] == save["attempt"]
    }
    return [
        {
            "scheduled": save["scheduled"],
            "step": save["step"],
            "background": save["background"],
            "blocking": save["blocking"],
            "interval": following.get(id(save)),
        }
        for save in known
    ]


def queue_depth(report: Report, zone: tzinfo) -> go.Figure:
    """Return how many saves were not yet complete when each was handed over."""
    saves = thinned(
        [
            save
            for save in report["checkpoints"]
            if save["scheduled"] is not None and save["queue_depth"] is not None
        ],
        MOST,
    )
    figure = go.Figure(
        go.Scatter(
            x=[local(save["scheduled"], zone) for save in saves],
            y=[save["queue_depth"] for save in saves],
            mode="lines+markers" if len(saves) < 60 else "lines",
            line={
                "color": metrics.category("checkpoint_save").colour,
                "width": 2,
                "shape": "hv",
            },
            hovertext=[f"{counted(save['queue_depth'], 'save')} in the queue" for save in saves],
            hovertemplate="%{hovertext}<br>%{x|%b %d %H:%M:%S}<extra></extra>",
        )
    )
    styled(figure, 180)
    deepest = max((save["queue_depth"] for save in saves), default=0)
    figure.update_yaxes(
        rangemode="tozero",
        tickformat=",d",
        dtick=1 if deepest <= _FEW_TICKS else None,
        fixedrange=True,
    )
    mark_incidents(figure, report["incidents"], zone)
    time_axis(figure, report, zone)
    return figure
