"""Where the time of a run went."""

from collections.abc import Sequence

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway import metrics
from headway.dashboard.figures.style import HORIZONTAL_BARS, Report, styled
from headway.dashboard.palette import NEUTRAL
from headway.wording import duration, percent

_ROOM = 40
"""Percent of the width that words need beside a bar."""


def ledger_rows(report: Report) -> list[tuple[metrics.Category, int]]:
    """Return the categories that hold time, in reading order, and always `unattributed`."""
    times = report["categories"]
    names = [*metrics.CATEGORIES, *sorted(set(times) - set(metrics.CATEGORIES))]
    return [
        (metrics.category(name), times.get(name, 0))
        for name in names
        if times.get(name, 0) or name in ("productive", "unattributed")
    ]


def say_amounts(figure: go.Figure, losses: Sequence[tuple[str, float, float, str]]) -> None:
    """Write the amount of each loss beside its bar, which may be too thin to be seen.

    A loss is its row, the begin and the width of its bar in percent, and the words.
    """
    for row, base, width, amount in losses:
        left = base > _ROOM
        figure.add_annotation(
            x=base if left else base + width,
            y=row,
            text=amount,
            xanchor="right" if left else "left",
            xshift=-4 if left else 4,
            showarrow=False,
            font_size=11,
        )


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
    say_amounts(
        figure,
        [
            (label, base, width, duration(ns))
            for label, base, width, (_, ns) in zip(
                labels[1:-1], bases[1:-1], widths[1:-1], losses, strict=True
            )
            if ns
        ],
    )
    styled(figure, 30 * len(labels) + 60, barmode="overlay", bargap=0.25)
    figure.update_yaxes(autorange="reversed", showgrid=False, fixedrange=True)
    figure.update_xaxes(range=[0, 100], ticksuffix=" %", fixedrange=True, nticks=6)
    return figure
