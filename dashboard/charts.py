"""Figures of one run from the report, the intervals and the step curve. Pure functions.

Colours, titles and definitions come from `headway.metrics`. Text colours are left to the page's
theme, so that one figure reads well on a light and on a dark background.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway import metrics
from headway.dashboard.lanes import drawn, in_rows
from headway.dashboard.palette import EDGE, GRID, NEUTRAL
from headway.wording import counted, duration, percent

Report = Mapping[str, Any]
Interval = Mapping[str, Any]

_MILLISECOND = 1_000_000
_SECOND = 1_000 * _MILLISECOND
MOST_ROWS = 40

HORIZONTAL_BARS: Mapping[str, Any] = {"orientation": "h", "marker_line": {"color": EDGE}}


def ledger_rows(report: Report) -> list[tuple[metrics.Category, int]]:
    """Return the categories that hold time, in reading order, and always `unattributed`."""
    times = report["categories"]
    names = [*metrics.CATEGORIES, *sorted(set(times) - set(metrics.CATEGORIES))]
    return [
        (metrics.category(name), times.get(name, 0))
        for name in names
        if times.get(name, 0) or name in ("productive", "unattributed")
    ]


def waterfall(report: Report) -> go.Figure:
    """Return the way from elapsed time down to productive time; the shares sum to 100 %."""
    elapsed = report["elapsed_ns"]
    rows = ledger_rows(report)
    losses = [(category, ns) for category, ns in rows if category.name != "productive"]
    productive = report["categories"].get("productive", 0)
    labels, bases, widths, colours, hovers = [], [], [], [], []

    def add(title: str, base: int, ns: int, colour: str, description: str) -> None:
        labels.append(f"{title}  <b>{percent(ns / elapsed)}</b>")
        bases.append(100 * base / elapsed)
        widths.append(100 * ns / elapsed)
        colours.append(colour)
        hovers.append(f"<b>{title}</b><br>{duration(ns)}, {percent(ns / elapsed)}<br>{description}")

    add("Elapsed", 0, elapsed, NEUTRAL, "The run's whole time, from its first evidence on.")
    left = elapsed
    for category, ns in losses:
        left -= ns
        add(category.title, left, ns, category.colour, category.description)
    lasting = metrics.category("productive")
    add(lasting.title, 0, productive, lasting.colour, lasting.description)
    figure = go.Figure(
        go.Bar(
            name="Ledger",
            y=labels,
            base=bases,
            x=widths,
            marker_color=colours,
            hovertext=hovers,
            hovertemplate="%{hovertext}<extra></extra>",
            **HORIZONTAL_BARS,
        )
    )
    at_risk = report["parts"].get("productive", {}).get("at_risk", 0)
    if at_risk:
        figure.add_bar(
            name="At risk",
            y=[labels[-1]],
            base=[100 * (productive - at_risk) / elapsed],
            x=[100 * at_risk / elapsed],
            marker_color=lasting.colour,
            marker_pattern={"shape": "/", "fgcolor": "rgba(255,255,255,0.75)", "size": 6},
            hovertext=[
                f"<b>{lasting.title}, at risk</b><br>{duration(at_risk)}, "
                f"{percent(at_risk / elapsed)}<br>No durable checkpoint holds these steps yet."
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            **HORIZONTAL_BARS,
        )
    _style(figure, 30 * len(labels) + 60, barmode="overlay", bargap=0.25)
    figure.update_yaxes(autorange="reversed", showgrid=False, fixedrange=True)
    figure.update_xaxes(range=[0, 100], ticksuffix=" %", fixedrange=True, nticks=6)
    return figure


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
            base=[_local(one["start"], zone) for one in bars[name]],
            x=[(one["end"] - one["start"]) / _MILLISECOND for one in bars[name]],
            marker_color=category.colour,
            marker_line_width=0,
            orientation="h",
            hovertext=[_lane_hover(category, one) for one in bars[name]],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    _style(figure, 26 * len(shown) + 110, barmode="overlay", bargap=0.3, showlegend=True)
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=list(shown.values()),
        autorange="reversed",
        showgrid=False,
        fixedrange=True,
    )
    _time_axis(figure, report, zone)
    return figure


def steps_over_time(report: Report, points: Sequence[Mapping[str, Any]], zone: tzinfo) -> go.Figure:
    """Return completed steps over time; a rollback is visible as a fall."""
    figure = go.Figure()
    line = curve(report, points)
    figure.add_scatter(
        name="Step",
        x=[_local(time, zone) for time, _ in line],
        y=[step for _, step in line],
        mode="lines",
        line={"color": metrics.category("productive").colour, "width": 2},
        hovertemplate="Step %{y:,}<br>%{x|%H:%M:%S}<extra></extra>",
    )
    durable = _durable(report)
    figure.add_scatter(
        name="Durable checkpoint",
        x=[_local(one["durable_since"], zone) for one in durable],
        y=[one["step"] for one in durable],
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
            for one in durable
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    incidents = report["incidents"]
    figure.add_scatter(
        name="Incident",
        x=[_local(one["opened"], zone) for one in incidents],
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
    _style(figure, 320, showlegend=True)
    figure.update_yaxes(title="Step", rangemode="tozero", tickformat=",d")
    _time_axis(figure, report, zone)
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


def rollback_distance(report: Report) -> go.Figure:
    """Return the steps that each incident threw away, as far as that is known."""
    incidents = [one for one in report["incidents"] if one["rollback_steps"] is not None]
    figure = go.Figure(
        go.Bar(
            x=[str(one["number"]) for one in incidents],
            y=[one["rollback_steps"] for one in incidents],
            marker={"color": metrics.category("rolled_back").colour, "line": {"color": EDGE}},
            hovertext=[
                f"Incident {one['number']}: {one['cause']}<br>"
                f"{counted(one['rollback_steps'], 'step')}, {duration(one['rollback_ns'])}"
                for one in incidents
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    _style(figure, 260, bargap=0.5)
    figure.update_xaxes(title="Incident", type="category", fixedrange=True)
    figure.update_yaxes(title="Steps", tickformat=",d", rangemode="tozero", fixedrange=True)
    return figure


def checkpoint_freshness(report: Report, zone: tzinfo) -> go.Figure:
    """Return the age of the newest durable checkpoint over time: a saw tooth, low is good."""
    corners = freshness(report)
    unit, suffix = _unit(max((age for _, age in corners), default=0))
    figure = go.Figure(
        go.Scatter(
            x=[_local(time, zone) for time, _ in corners],
            y=[age / unit for _, age in corners],
            mode="lines",
            line={"color": metrics.category("checkpoint_save").colour, "width": 2},
            hovertext=[duration(age) for _, age in corners],
            hovertemplate="%{hovertext} old<br>%{x|%H:%M:%S}<extra></extra>",
        )
    )
    _style(figure, 260)
    figure.update_yaxes(title="Age", ticksuffix=f" {suffix}", rangemode="tozero", fixedrange=True)
    _time_axis(figure, report, zone)
    return figure


def freshness(report: Report) -> list[tuple[int, int]]:
    """Return the corners (time, age) of the newest durable checkpoint's age.

    Checkpoints durable since 10 and 30 in a run seen at 35 give (10, 0) (30, 20) (30, 0) (35, 5).
    """
    ends = sorted(one["durable_since"] for one in _durable(report))
    last = report["as_of"] if report["end"] is None else report["end"]
    ends = [end for end in ends if end < last]
    corners = []
    for begin, end in pairwise([*ends, last]):
        corners += [(begin, 0), (end, end - begin)]
    return corners


def _durable(report: Report) -> list[Mapping[str, Any]]:
    """Return the checkpoints that held: neither failed nor revoked since."""
    return [
        one
        for one in report["checkpoints"]
        if one["durable_since"] is not None and one["state"] in ("claimed", "verified")
    ]


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


def _step_at(points: Sequence[Mapping[str, Any]], time: int) -> int:
    before = [point["step"] for point in points if point["time"] <= time]
    return int(before[-1]) if before else 0


def _unit(ns: int) -> tuple[int, str]:
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if ns >= 2 * size * _SECOND:
            return size * _SECOND, name
    return _SECOND, "s"


def _local(ns: int, zone: tzinfo) -> str:
    """Return a time as plotly wants it: without a zone, already in the reader's."""
    return datetime.fromtimestamp(ns / _SECOND, tz=zone).replace(tzinfo=None).isoformat()


def _time_axis(figure: go.Figure, report: Report, zone: tzinfo) -> None:
    last = report["as_of"] if report["end"] is None else report["end"]
    figure.update_xaxes(
        type="date",
        range=[_local(report["start"], zone), _local(last, zone)],
        gridcolor=GRID,
        nticks=6,
        tickangle=0,
        fixedrange=True,
    )


def _style(figure: go.Figure, height: int, **layout: Any) -> None:
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
