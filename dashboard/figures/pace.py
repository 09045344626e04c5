"""How fast a run trained over time: step time and waits, throughput, loss."""

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway import metrics
from headway.dashboard.figures.marks import mark_incidents
from headway.dashboard.figures.style import SECOND, Report, local, styled, time_axis
from headway.dashboard.palette import NEUTRAL
from headway.wording import counted, duration

Columns = Sequence[Mapping[str, Any]]

_HEIGHT = 230
_LEAST_UNIT = 2
_UNITS = ((60 * SECOND, "min"), (SECOND, "s"), (SECOND // 1_000, "ms"))


def step_time(report: Report, columns: Columns, zone: tzinfo) -> go.Figure:
    """Return the median and the 95th percentile of a step's time, and the wait for its data."""
    most = max((one["tail"] or 0 for one in columns), default=0)
    unit, suffix = next(
        ((size, name) for size, name in _UNITS if most >= _LEAST_UNIT * size), _UNITS[-1]
    )
    figure = go.Figure()
    for name, field, colour, dash in (
        ("95 % of steps are faster", "tail", NEUTRAL, "dot"),
        ("Median step", "step", metrics.category("productive").colour, "solid"),
        ("Mean wait for data", "wait", metrics.category("data_wait").colour, "solid"),
    ):
        figure.add_scatter(
            name=name,
            x=_middles(columns, zone),
            y=[None if one[field] is None else one[field] / unit for one in columns],
            mode="lines",
            line={"color": colour, "width": 2, "dash": dash},
            hovertext=[f"{name}: {duration(one[field])}" for one in columns],
            hovertemplate="%{hovertext}<br>%{x|%b %d %H:%M:%S}<extra></extra>",
        )
    styled(figure, _HEIGHT + 30, showlegend=True)
    figure.update_yaxes(ticksuffix=f" {suffix}", rangemode="tozero", fixedrange=True)
    mark_incidents(figure, report["incidents"], zone)
    time_axis(figure, report, zone)
    return figure


def throughput(
    report: Report, columns: Columns, tokens_per_step: int | None, zone: tzinfo
) -> go.Figure:
    """Return tokens per second, or steps per minute where the tokens of a step are unknown."""
    scale, unit = (60, "steps/min") if tokens_per_step is None else (tokens_per_step, "tokens/s")
    values = [one["steps_per_second"] * scale for one in columns]
    figure = go.Figure(
        go.Scatter(
            x=[local(one["start"], zone) for one in columns],
            y=values,
            mode="lines",
            line={
                "color": metrics.category("productive").colour,
                "width": 2,
                "shape": "hv",
            },
            fill="tozeroy",
            fillcolor="rgba(0,158,115,0.15)",
            hovertext=[
                f"{value:,.4g} {unit}, {counted(one['steps'], 'step')} in "
                f"{duration(one['end'] - one['start'])}"
                for value, one in zip(values, columns, strict=True)
            ],
            hovertemplate="%{hovertext}<br>%{x|%b %d %H:%M:%S}<extra></extra>",
        )
    )
    styled(figure, _HEIGHT)
    figure.update_yaxes(title=unit, rangemode="tozero", tickformat="~s", fixedrange=True)
    mark_incidents(figure, report["incidents"], zone)
    time_axis(figure, report, zone)
    return figure


def has_loss(columns: Columns) -> bool:
    """Return whether any step told a loss that is a number."""
    return any(one["loss"] is not None for one in columns)


def loss(report: Report, columns: Columns, zone: tzinfo) -> go.Figure:
    """Return the loss over time, and where steps had none that is a number."""
    figure = go.Figure(
        go.Scatter(
            name="Loss",
            x=_middles(columns, zone),
            y=[one["loss"] for one in columns],
            mode="lines",
            connectgaps=True,
            line={"color": metrics.category("checkpoint_save").colour, "width": 2},
            hovertext=[
                ""
                if one["loss"] is None
                else f"Loss {one['loss']:.6g}, "
                f"from {one['lowest_loss']:.6g} to {one['highest_loss']:.6g} here"
                for one in columns
            ],
            hovertemplate="%{hovertext}<br>%{x|%b %d %H:%M:%S}<extra></extra>",
        )
    )
    holes = [one for one in columns if one["unknown_losses"]]
    if holes:
        low = min(one["lowest_loss"] for one in columns if one["lowest_loss"] is not None)
        figure.add_scatter(
            name="Not a number",
            x=_middles(holes, zone),
            y=[low] * len(holes),
            mode="markers",
            marker={
                "symbol": "x",
                "size": 8,
                "color": metrics.category("rolled_back").colour,
            },
            hovertext=[
                f"{counted(one['unknown_losses'], 'step')} without a loss that is a number"
                for one in holes
            ],
            hovertemplate="%{hovertext}<br>%{x|%b %d %H:%M:%S}<extra></extra>",
        )
    styled(figure, _HEIGHT, showlegend=bool(holes))
    figure.update_yaxes(tickformat="~g", fixedrange=True)
    mark_incidents(figure, report["incidents"], zone)
    time_axis(figure, report, zone)
    return figure


def _middles(columns: Columns, zone: tzinfo) -> list[str]:
    return [local((one["start"] + one["end"]) // 2, zone) for one in columns]
