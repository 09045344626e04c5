"""How a figure gets onto a page: in the reader's colours, with words for who cannot see it."""

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types
import streamlit as st

from headway.dashboard.palette import EDGE
from headway.dashboard.views import reader

_CHART = {"displayModeBar": False}


def plot(figure: go.Figure, key: str, description: str) -> None:
    """Show a figure; `description` says what there is to see."""
    look = reader.look()
    ink = look.text
    figure.update_layout(
        font_color=ink, hoverlabel={"font_color": ink, "bgcolor": look.panel, "bordercolor": EDGE}
    )
    figure.update_xaxes(tickfont_color=ink, title_font_color=ink)
    figure.update_yaxes(tickfont_color=ink, title_font_color=ink)
    st.plotly_chart(figure, key=key, config=_CHART, alt=description)
