"""The Run page: how much of one run's time became progress, and what happened to the rest."""

from collections.abc import Callable, Mapping

import streamlit as st

from headway.dashboard import markup, sentences, source
from headway.dashboard.source import RunData
from headway.dashboard.views import notes, reader
from headway.dashboard.views.run_panels import (
    checkpoints,
    comparison,
    course,
    incidents,
    overview,
    problems,
    ranks,
    settings,
)

_PARAMETER = "run"
_PANELS: Mapping[str, Callable[[RunData], None]] = {
    "Course": course.show,
    "Ranks": ranks.show,
    "Checkpoints": checkpoints.show,
    "Incidents": incidents.show,
    "Settings": settings.show,
    "Compare": comparison.show,
    "Notes": lambda data: notes.show("run", data.report["run"]),
}
"""Only the tab that is open asks and draws."""


@reader.framed
def page() -> None:
    """Draw the page of the run that the address names, the newest where it names none."""
    st.title("Run")
    known = [run["run"] for run in source.runs()]
    if known and _PARAMETER not in st.query_params and _PARAMETER not in st.session_state:
        st.query_params[_PARAMETER] = known[0]
        st.rerun()
    run = st.selectbox(
        "Run",
        known,
        index=None,
        key=_PARAMETER,
        bind="query-params",
        accept_new_options=True,
        placeholder="Choose a run, or type the name of one",
        label_visibility="collapsed",
    )
    if run is None:
        _choose(known)
        return
    live = source.run_data(run).live
    reader.refreshed(lambda: _show(run, live), live=live)


def _choose(known: list[str]) -> None:
    def changed() -> bool:
        return [one["run"] for one in source.runs()] != known

    if known:
        reader.wait(changed, "No run is chosen.", "Choose one above or on the Fleet page.")
    else:
        reader.wait(changed, reader.NO_RUN, reader.START_ONE)


def _show(run: str, live: bool) -> None:
    data = source.run_data(run)
    if live and not data.live:
        st.rerun()
    report = data.report
    st.html(markup.lead(sentences.headline(report)))
    st.caption(sentences.state(report, reader.zone()))
    overview.show_numbers(report)
    overview.show_links(report)
    overview.show_ledger(report)
    tabs = st.tabs(list(_PANELS), key="view", bind="query-params")
    for tab, panel in zip(tabs, _PANELS.values(), strict=True):
        if tab.open:
            with tab:
                panel(data)
    problems.show(report)
