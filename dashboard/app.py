"""The pages as Streamlit runs them; start it with `headway dashboard`."""

from pathlib import Path

import streamlit as st

from headway.dashboard import bars, heatmap, markup, sign_in
from headway.dashboard.pages import PAGES
from headway.dashboard.sentences import IDLE
from headway.settings import DashboardSettings, load

# A local picture: with a built-in icon the browser would fetch it from a font host.
_ICON = Path(__file__).with_name("images") / "favicon.png"
_WORDMARK = Path(__file__).with_name("images") / "wordmark.svg"

page = st.navigation(
    [
        st.Page(
            one.draw,
            title=one.title,
            url_path=one.path,
            default=one is PAGES[0],
            visibility="visible" if one.listed else "hidden",
        )
        for one in PAGES
    ],
    position="top",
)
st.set_page_config(page_title=f"{page.title} - Headway", page_icon=str(_ICON), layout="wide")
st.logo(str(_WORDMARK), size="large")
st.html(markup.STYLE + bars.STYLE + heatmap.STYLE)
if sign_in.admitted(load(DashboardSettings)):
    page.run()
    st.html(markup.foot(IDLE))
