"""Which part of the fleet's time a page shows, and of which teams and clusters; kept in its URL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from headway.dashboard import source
from headway.dashboard.views import reader
from headway.fleet.spans import DAY
from headway.wording import when

LENGTHS: Mapping[str, int | None] = {
    "24 h": DAY,
    "7 days": 7 * DAY,
    "30 days": 30 * DAY,
    "all time": None,
}
"""Windows that can be chosen, in ns; None is all time. The address names them by these words."""
_FILTERS = ("team", "cluster")
ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What was chosen: a length in words and in ns, and labels as NAME=VALUE."""

    name: str
    length: int | None
    labels: tuple[str, ...] = ()

    @property
    def asked(self) -> dict[str, Any]:
        """Return it as parameters of the API."""
        found: dict[str, Any] = {"last": self.length}
        return found | ({"label": self.labels} if self.labels else {})

    def words(self, answer: Mapping[str, Any]) -> str:
        """Return from when to when an answer reaches."""
        zone = reader.zone()
        return f"From {when(answer['start'], zone)} to {when(answer['end'], zone)}"


def chosen(default: str = "7 days", *, labels: bool = True) -> Window:
    """Show the controls and return what they say; they keep it from page to page."""
    with st.container(horizontal=True, gap="small", vertical_alignment="top", key="window-bar"):
        name = st.segmented_control(
            "Time",
            list(LENGTHS),
            default=default,
            required=True,
            key="window",
            bind="query-params",
            persist_state="session",
            help="Counted back from the newest sign of any run, so that runs that ended long ago "
            "are shown, too.",
        )
        wanted = [_label(each) for each in _FILTERS] if labels else []
    name = name or default
    return Window(
        name=name,
        length=LENGTHS[name],
        labels=tuple(each for each in wanted if each is not None),
    )


def _label(name: str) -> str | None:
    """Let the reader choose a value of a label, where there is more than one."""
    values = [one["label"] for one in source.answer("fleet", by=name)["groups"]]
    known: Sequence[str] = [value for value in values if value is not None]
    if len(known) < 2 and name not in st.query_params:
        return None
    value = st.selectbox(
        name.capitalize(),
        [ANY, *known],
        key=name,
        bind="query-params",
        persist_state="session",
        accept_new_options=True,  # a link may name a value that is gone
        width=165,
    )
    return None if value in (None, ANY) else f"{name}={value}"
