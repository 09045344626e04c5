"""What may be wrong with the data of a run."""

import streamlit as st

from headway.dashboard import markup, numbers, source
from headway.dashboard.figures.style import Report
from headway.wording import count, counted, flag, plain

_MOST = 100


def show(report: Report) -> None:
    """Show what was lost and what does not fit."""
    numbers.heading(
        "Data quality",
        "Events that were lost before they could be stored, and what does not fit together.",
        source.query("runs/{run}/report", run=report["run"]),
        key="problems",
    )
    if not report["problems"] and not report["dropped_events"] and not report["flags"]:
        st.caption("No event was dropped, and nothing in the events contradicts itself.")
        return
    if report["dropped_events"]:
        st.caption(f"{counted(report['dropped_events'], 'event')} lost by their producers.")
    rows = [(plain(one["kind"]), count(one["count"]), one["detail"]) for one in report["problems"]]
    rows += [(flag(name), "", "") for name in report["flags"]]
    if rows:
        columns = ("Problem", "#Count", "Detail")
        st.html(markup.table("Problems", columns, rows[:_MOST], wide=(2,)))
    if len(rows) > _MOST:
        st.caption(f"The first {_MOST} of {count(len(rows))}.")
