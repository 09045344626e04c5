"""How a figure gets onto a page: in the reader's colours, with words for who cannot see it."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types
import streamlit as st

from headway.dashboard import bars, markup
from headway.dashboard.palette import EDGE
from headway.dashboard.views import reader

_CHART = {"displayModeBar": False}


def plot(figure: go.Figure, key: str, description: str) -> None:
    """Show a figure; `description` says what there is to see.

    The colours of bars are explained above it, where the words wrap on a narrow screen: plotly's
    own legend would lie over the bars there.
    """
    names = bar_colours(figure)
    if figure.layout.showlegend and names:
        figure.update_layout(showlegend=False)
        st.html(markup.colours(names))
    look = reader.look()
    ink = look.text
    figure.update_layout(
        font_color=ink, hoverlabel={"font_color": ink, "bgcolor": look.panel, "bordercolor": EDGE}
    )
    figure.update_xaxes(tickfont_color=ink, title_font_color=ink)
    figure.update_yaxes(tickfont_color=ink, title_font_color=ink)
    st.plotly_chart(figure, key=key, config=_CHART, alt=description)


def plain_bars(
    rows: Sequence[bars.Row], description: str, colours: Mapping[str, str] | None = None
) -> None:
    """Show bars that need no plotly: shares of one whole, or with `colours` that mean something."""
    if colours is not None:
        st.html(markup.colours(colours))
    st.html(bars.html(rows, description, panel=reader.look().panel, shares=colours is None))


def bar_colours(figure: go.Figure) -> dict[str, str]:
    """Return what the colours of a figure of bars mean; empty where it has other lines, too."""
    found = {}
    for trace in figure.data:
        if trace.showlegend is False:
            continue
        marks = trace.type == "bar" or (trace.type == "scatter" and trace.mode == "markers")
        if not marks or not isinstance(trace.marker.color, str):
            return {}
        sign = "" if trace.type == "bar" else "\u25bc "
        found[f"{sign}{trace.name}"] = trace.marker.color
    return found
