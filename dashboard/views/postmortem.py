"""The post-mortem of an incident as a file to take away, made on the server when it is wanted."""

from collections.abc import Callable
from datetime import tzinfo

import streamlit as st

from headway.dashboard import source
from headway.dashboard.views import reader
from headway.postmortem.blocks import Document
from headway.postmortem.html import html
from headway.postmortem.markdown import markdown
from headway.postmortem.page import page
from headway.postmortem.reading import postmortem_of

_FORMS = (("Markdown", "md", "text/markdown", markdown), ("HTML", "html", "text/html", html))


def downloads(incident: str) -> None:
    """Offer the post-mortem of an incident in every form, in the reader's time zone."""
    zone = reader.zone()
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for name, suffix, media, write in _FORMS:
            st.download_button(
                f"Post-mortem as {name}",
                data=_file(incident, zone, write),
                file_name=f"postmortem-{incident}.{suffix}",
                mime=media,
                key=f"postmortem-{suffix}",
                on_click="ignore",
            )


def _file(incident: str, zone: tzinfo, write: Callable[[Document], str]) -> Callable[[], bytes]:
    """Return what asks for the newest state and writes it, once somebody wants it."""

    def made() -> bytes:
        found = postmortem_of(source.client().postmortem(incident))
        return write(page(found, zone)).encode()

    return made
