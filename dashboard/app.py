"""The pages as Streamlit runs them; start it with `headway dashboard`."""

from pathlib import Path

import streamlit as st

from headway.dashboard import markup
from headway.dashboard.views import fleet, run

# A local picture: with a built-in icon the browser would fetch it from a font host.
_ICON = Path(__file__).with_name("images") / "favicon.png"
_WORDMARK = Path(__file__).with_name("images") / "wordmark.svg"

page = st.navigation(
    [
        st.Page(fleet.page, title="Fleet", url_path="fleet", default=True),
        st.Page(run.page, title="Run", url_path="run"),
    ],
    position="top",
)
st.set_page_config(page_title=f"{page.title} - Headway", page_icon=str(_ICON), layout="wide")
st.logo(str(_WORDMARK), size="large")
st.html(markup.STYLE)
page.run()
