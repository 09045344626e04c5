"""The attempts of a run over time."""

from collections.abc import Sequence
from datetime import tzinfo

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway import metrics
from headway.dashboard.figures.marks import mark_incidents
from headway.dashboard.figures.style import (
    MILLISECOND,
    Interval,
    Report,
    local,
    styled,
    time_axis,
)
from headway.dashboard.lanes import drawn, in_rows
from headway.wording import duration

MOST_ROWS = 40


def attempts_lane(report: Report, intervals: Sequence[Interval], zone: tzinfo) -> go.Figure:
    """Return one row per attempt, coloured by what its time became; the newest rows if many."""
    attempts = report["attempt_list"][-MOST_ROWS:]
    shown = {one["attempt"]: f"Attempt {one['number']}" for one in attempts}
    placed = in_rows(report["attempt_list"], intervals)
    bars: dict[str, list[Interval]] = {}
    for interval in drawn([one for one in placed if one["attempt"] in shown]):
        bars.setdefault(interval["category"], []).append(interval)
    figure = go.Figure()
    for name in [*metrics.CATEGORIES, *sorted(set(bars) - set(metrics.CATEGORIES))]:
        if name not in bars:
            continue
        category = metrics.category(name)
        figure.add_bar(
            name=category.title,
            y=[shown[one["attempt"]] for one in bars[name]],
            base=[local(one["start"], zone) for one in bars[name]],
            x=[(one["end"] - one["start"]) / MILLISECOND for one in bars[name]],
            marker_color=category.colour,
            marker_line_width=0,
            orientation="h",
            hovertext=[_lane_hover(category, one) for one in bars[name]],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    styled(figure, 26 * len(shown) + 110, barmode="overlay", bargap=0.3, showlegend=True)
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=list(shown.values()),
        autorange="reversed",
        showgrid=False,
        fixedrange=True,
    )
    time_axis(figure, report, zone)
    if len(attempts) < len(report["attempt_list"]):
        last = report["as_of"] if report["end"] is None else report["end"]
        figure.update_xaxes(range=[local(attempts[0]["start"], zone), local(last, zone)])
    mark_incidents(figure, report["incidents"], zone)
    return figure


def _lane_hover(category: metrics.Category, interval: Interval) -> str:
    part = f", {interval['part'].replace('_', ' ')}" if interval["part"] else ""
    text = f"<b>{category.title}{part}</b><br>{duration(interval['end'] - interval['start'])}"
    if interval["first_step"] is not None and interval["last_step"] is not None:
        text += f"<br>steps {interval['first_step']:,} to {interval['last_step']:,}"
    text += "".join(
        f"<br>within it {metrics.category(name).title} {duration(ns)}"
        for name, ns in interval["amounts"].items()
        if name != category.name and ns
    )
    return f"{text}<br>{category.description}"
