"""Completed steps over time."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway import metrics
from headway.dashboard.figures.checkpoints import MOST_CORNERS, durable
from headway.dashboard.figures.marks import MOST, mark_incidents
from headway.dashboard.figures.style import Report, local, styled, time_axis
from headway.dashboard.lanes import highest, thinned
from headway.wording import counted, duration

_MOST_CHECKPOINTS = 500
_MANY = 80
"""Marks beyond which each is drawn small, so that the line stays visible."""


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
        hovertemplate="Step %{y:,}<br>%{x|%b %d %H:%M:%S}<extra></extra>",
    )
    held = thinned(durable(report), _MOST_CHECKPOINTS)
    figure.add_scatter(
        name="Durable checkpoint",
        x=[local(one["durable_since"], zone) for one in held],
        y=[one["step"] for one in held],
        mode="markers",
        cliponaxis=False,
        marker={
            "symbol": "diamond",
            "size": 8 if len(held) <= _MANY else 4,
            "color": metrics.category("checkpoint_save").colour,
        },
        hovertext=[
            f"Checkpoint {one['checkpoint']} ({one['state']})<br>holds step {one['step']:,}, "
            f"training waited {duration(one['blocking'])}"
            for one in held
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    incidents = report["incidents"][-MOST:]
    times = [point["time"] for point in points]
    figure.add_scatter(
        name="Incident",
        x=[local(one["opened"], zone) for one in incidents],
        y=[_step_at(points, times, one["opened"]) for one in incidents],
        mode="markers",
        cliponaxis=False,
        marker={
            "symbol": "x",
            "size": 9 if len(incidents) <= _MANY else 4,
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


def steps_at_risk(report: Report, points: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Return the corners (time, steps) of the steps that a failure would lose at each time.

    A curve over (0, 0) (30, 30) with a checkpoint of step 20 complete at 25 gives (0, 0) (25, 25)
    (25, 5) (30, 10).
    """
    held = sorted(durable(report), key=lambda one: one["durable_since"])
    corners = curve(report, points)
    found: list[tuple[int, int]] = []
    newest = place = 0
    for number, (time, step) in enumerate(corners):
        while place < len(held) and held[place]["durable_since"] <= time:
            moment = held[place]["durable_since"]
            reached = _between(corners[max(number - 1, 0)], (time, step), moment)
            found.append((moment, max(reached - newest, 0)))
            newest = max(newest, held[place]["step"])
            found.append((moment, max(reached - newest, 0)))
            place += 1
        found.append((time, max(step - newest, 0)))
    return found


def _between(one: tuple[int, int], other: tuple[int, int], time: int) -> int:
    """Return the step at a time between two corners."""
    if other[0] <= one[0]:
        return other[1]
    share = min(max(time - one[0], 0), other[0] - one[0])
    return one[1] + (other[1] - one[1]) * share // (other[0] - one[0])


def risk_over_time(report: Report, points: Sequence[Mapping[str, Any]], zone: tzinfo) -> go.Figure:
    """Return the steps that a failure would have lost over time: low is good."""
    corners = highest(steps_at_risk(report, points), MOST_CORNERS)
    figure = go.Figure(
        go.Scatter(
            x=[local(time, zone) for time, _ in corners],
            y=[steps for _, steps in corners],
            mode="lines",
            line={"color": metrics.category("rolled_back").colour, "width": 2},
            hovertemplate="%{y:,} steps at risk<br>%{x|%b %d %H:%M:%S}<extra></extra>",
        )
    )
    styled(figure, 260)
    figure.update_yaxes(title="Steps", tickformat=",d", rangemode="tozero", fixedrange=True)
    mark_incidents(figure, report["incidents"], zone)
    time_axis(figure, report, zone)
    return figure


def _step_at(points: Sequence[Mapping[str, Any]], times: Sequence[int], time: int) -> int:
    place = bisect_right(times, time)
    return int(points[place - 1]["step"]) if place else 0
