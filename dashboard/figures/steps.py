"""Completed steps over time."""

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway import metrics
from headway.dashboard.figures.checkpoints import durable
from headway.dashboard.figures.style import Report, local, styled, time_axis
from headway.wording import counted, duration


def steps_over_time(report: Report, points: Sequence[Mapping[str, Any]], zone: tzinfo) -> go.Figure:
    """Return completed steps over time; a rollback is visible as a fall."""
    figure = go.Figure()
    line = curve(report, points)
    figure.add_scatter(
        name="Step",
        x=[local(time, zone) for time, _ in line],
        y=[step for _, step in line],
        mode="lines",
        line={"color": metrics.category("productive").colour, "width": 2},
        hovertemplate="Step %{y:,}<br>%{x|%H:%M:%S}<extra></extra>",
    )
    held = durable(report)
    figure.add_scatter(
        name="Durable checkpoint",
        x=[local(one["durable_since"], zone) for one in held],
        y=[one["step"] for one in held],
        mode="markers",
        cliponaxis=False,
        marker={
            "symbol": "diamond",
            "size": 8,
            "color": metrics.category("checkpoint_save").colour,
        },
        hovertext=[
            f"Checkpoint {one['checkpoint']} ({one['state']})<br>holds step {one['step']:,}, "
            f"training waited {duration(one['blocking'])}"
            for one in held
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    incidents = report["incidents"]
    figure.add_scatter(
        name="Incident",
        x=[local(one["opened"], zone) for one in incidents],
        y=[_step_at(points, one["opened"]) for one in incidents],
        mode="markers",
        cliponaxis=False,
        marker={
            "symbol": "x",
            "size": 9,
            "color": metrics.category("rolled_back").colour,
        },
        hovertext=[
            f"Incident {one['number']}: {one['cause']}<br>"
            f"{counted(one['rollback_steps'], 'step')} rolled back"
            for one in incidents
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    styled(figure, 320, showlegend=True)
    figure.update_yaxes(title="Step", rangemode="tozero", tickformat=",d")
    time_axis(figure, report, zone)
    return figure


def curve(report: Report, points: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Return the corners (time, step) of the step curve, each rollback as a fall.

    The curve falls where the new attempt starts, to the step that it restored: 574 done at 574,
    an attempt from 634 that restored 500 gives (574, 574) (634, 574) (634, 500).
    """
    attempts = {one["attempt"]: one for one in report["attempt_list"]}
    corners: list[tuple[int, int]] = []
    before = None
    for point in points:
        attempt = attempts.get(point["attempt"])
        if attempt is not None and point["attempt"] != before and attempt["resumed"] is not None:
            if corners:
                corners.append((max(attempt["start"], corners[-1][0]), corners[-1][1]))
            corners.append((corners[-1][0] if corners else attempt["start"], attempt["resumed"]))
        corners.append((point["time"], point["step"]))
        before = point["attempt"]
    return corners


def _step_at(points: Sequence[Mapping[str, Any]], time: int) -> int:
    before = [point["step"] for point in points if point["time"] <= time]
    return int(before[-1]) if before else 0
