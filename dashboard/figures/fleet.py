"""The fleet's GPU time: from allocated to productive, over time, and what incidents cost."""

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway import metrics
from headway.dashboard.bars import Part, Row
from headway.dashboard.figures import ledger
from headway.dashboard.figures.style import MILLISECOND, local, styled
from headway.dashboard.palette import INCIDENT
from headway.fleet.sides import SIDES
from headway.wording import counted, gpu_hours, percent, plain, titled

SIDE_COLOURS: Mapping[str, str] = {
    "machines": "#D55E00",
    "software": "#0072B2",
    "scheduling": "#E69F00",
    "undecided": "#7B8794",
}
"""Colours of the sides, from the Okabe-Ito palette."""
_MARKS = 104
"""Height in percent at which incidents stand, above the bars."""
_LONGEST_NAME = 60


def waterfall(group: Mapping[str, Any]) -> list[Row]:
    """Return the way from allocated GPU time down to productive time; the shares sum to 100 %."""
    meaning = "GPU time held by all runs."
    return ledger.waterfall(group["gpu_time"], "Allocated", meaning, gpu_hours)


def causes(group: Mapping[str, Any]) -> list[Row]:
    """Return what incidents of each cause cost in GPU-hours, coloured by whose they are."""
    rows = group["causes"]
    most = max(one["lost_gpu_ns"] for one in rows) or 1
    return [
        Row(
            name=titled(one["cause"]),
            parts=[
                Part(begin=0, width=one["lost_gpu_ns"] / most, colour=SIDE_COLOURS[one["side"]])
            ],
            amount=gpu_hours(one["lost_gpu_ns"]),
            meaning=[
                f"{SIDES[one['side']].title}: {counted(one['incidents'], 'incident')}, "
                f"{gpu_hours(one['lost_gpu_ns'])} lost",
                SIDES[one["side"]].description,
            ],
        )
        for one in rows
    ]


def side_colours(group: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what the colours of causes mean."""
    used = {one["side"] for one in group["causes"]}
    return {side.title: SIDE_COLOURS[name] for name, side in SIDES.items() if name in used}


def course(found: Mapping[str, Any], zone: tzinfo) -> go.Figure:
    """Return the shares of GPU time in each cell, with a mark where incidents opened."""
    cells = found["cells"]
    used = {name for one in cells for name, amount in one["categories"].items() if amount}
    order = [*metrics.CATEGORIES, *sorted(used - set(metrics.CATEGORIES))]
    figure = go.Figure()
    for name in order:
        if name not in used:
            continue
        category = metrics.category(name)
        own = [one for one in cells if one["categories"].get(name)]
        figure.add_bar(
            name=category.title,
            x=[local(one["start"], zone) for one in own],
            y=[100 * one["categories"][name] / _whole(one) for one in own],
            width=found["width_ns"] / MILLISECOND,
            offset=0,
            marker_color=category.colour,
            marker_line_width=0,
            hovertext=[
                f"<b>{category.title}</b> {percent(one['categories'][name] / _whole(one))}, "
                f"{gpu_hours(one['categories'][name])} of {gpu_hours(_whole(one))}"
                for one in own
            ],
            hovertemplate="%{hovertext}<br>from %{x|%b %d, %H:%M}<extra></extra>",
        )
    marked = [one for one in cells if one["incidents"]]
    figure.add_scatter(
        name="Incidents",
        x=[local(one["start"] + found["width_ns"] // 2, zone) for one in marked],
        y=[_MARKS] * len(marked),
        mode="markers",
        cliponaxis=False,
        marker={
            "symbol": "triangle-down",
            "size": [min(7 + 2 * one["incidents"], 15) for one in marked],
            "color": INCIDENT,
        },
        hovertext=[_mark(one) for one in marked],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    styled(figure, 340, barmode="stack", bargap=0, showlegend=True)
    marks = (0, 25, 50, 75, 100)
    figure.update_yaxes(range=[0, 110], tickvals=marks, ticktext=[f"{mark} %" for mark in marks])
    figure.update_xaxes(
        type="date",
        range=[local(cells[0]["start"], zone), local(cells[-1]["end"], zone)],
        nticks=6,
        tickangle=0,
    )
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True)
    return figure


def _whole(cell: Mapping[str, Any]) -> int:
    return sum(cell["categories"].values())


def _mark(cell: Mapping[str, Any]) -> str:
    kinds = ", ".join(f"{plain(cause)} {number}" for cause, number in cell["causes"].items())
    worst = cell["costliest"]
    return (
        f"<b>{counted(cell['incidents'], 'incident')}</b>: {kinds}<br>"
        f"Costliest: {shortened(worst['run_name'])}, {plain(worst['cause'])}, "
        f"{gpu_hours(worst['lost_gpu_ns'])}"
    )


def shortened(text: str) -> str:
    """Return a name that fits into a line of a figure."""
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 3]}..."


def most_marked(cells: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the costliest incident of each cell that has one, the costliest first."""
    found = [one["costliest"] for one in cells if one["costliest"] is not None]
    return sorted(found, key=lambda one: (-one["lost_gpu_ns"], one["incident"]))
