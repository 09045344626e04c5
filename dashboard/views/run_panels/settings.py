"""The tab on settings: what an attempt was configured with, what changed, and its limits."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from headway.course.setting_words import setting_name, setting_value
from headway.dashboard import markup, numbers, source
from headway.dashboard.figures.style import Report
from headway.dashboard.source import RunData
from headway.dashboard.views import notes, reader
from headway.wording import UNKNOWN, count, duration, percent, plain, when

_NEAR = 0.8
_MOST = 200
_MOST_NAMED = 30
_MOST_RESULTS = 20
_RECORD = (
    "No settings were recorded. Record a RunConfigured event once an attempt has begun: "
    "`recorder.record(RunConfigured(target_step=..., options={...}, links={...}))`."
)


def show(data: RunData) -> None:
    """Show the settings of one attempt."""
    report = data.report
    _configuration(report)
    _timeouts(report)


def timeout_name(name: str | None) -> str:
    """Return what a timeout is called: `in_process.soft_timeout` is `in process: soft timeout`."""
    return "none recorded" if name is None else plain(name).replace(".", ": ")


def _configuration(report: Report) -> None:
    answer = source.answer("runs/{run}/configuration", run=report["run"])
    attempts, units = answer["attempts"], answer["units"]
    numbers.heading(
        "Settings",
        "What one attempt told of itself, and what it took over from the attempt before. Secrets "
        "are masked before they are stored.",
        source.query("runs/{run}/configuration", run=report["run"]),
        key="settings",
    )
    if not attempts:
        st.caption("No attempt has been seen yet.")
        return
    numbered = {str(one["number"]): one for one in reversed(attempts)}
    # what the address holds is what is shown, so only the number is
    chosen = st.selectbox("Attempt", list(numbered), key="attempt", bind="query-params", width=160)
    one = numbered[chosen]
    others = [str(item["number"]) for item in attempts if item["changes"]]
    if others:
        shown = ", ".join(others[-_MOST_NAMED:])
        st.caption(f"Attempts that changed something: {shown}.")
    if not any(item["told"] for item in attempts):
        st.caption(_RECORD)
    if one["number"] > attempts[0]["number"]:
        st.subheader(f"Changed since attempt {one['number'] - 1}", anchor=False)
        if one["changes"]:
            st.html(changes(one["changes"], units, "Before", "After"))
        else:
            st.caption("Nothing of what was recorded.")
    rows = [
        (
            setting_name(item["field"], item["name"]),
            setting_value(item["field"], item["value"], units),
        )
        for item in one["settings"][:_MOST]
    ]
    with st.expander("All settings of this attempt", expanded=not one["changes"]):
        st.html(markup.table("Settings", ("Setting", "Value"), rows, wide=(1,), narrow=True))
        if len(one["settings"]) > len(rows):
            st.caption(f"The first {len(rows)} of {count(len(one['settings']))}.")
    _results(one["attempt"])
    notes.show("configuration", one["attempt"])


def _results(attempt: str) -> None:
    """Show the results of benchmarks and drills that this configuration produced."""
    asked = {"configuration": attempt, "limit": _MOST_RESULTS}
    found = source.answer("results", **asked)["results"]
    if not found:
        return
    numbers.heading(
        "Results of this configuration",
        "Benchmarks and drills that somebody attached with `headway attach`. Results of one title "
        "are compared on the tab Compare.",
        source.query("results", **asked),
        key="results",
    )
    for one in found:
        rows = [(place, f"{value:,.6g}") for place, value in one["numbers"].items()]
        who = "" if one["author"] is None else f" by {one['author']}"
        with st.expander(f"{one['title']}, attached {when(one['time'], reader.zone())}{who}"):
            st.html(markup.table(one["title"], ("Figure", "#Value"), rows[:_MOST], narrow=True))


def changes(
    found: Sequence[Mapping[str, Any]], units: Mapping[str, str], before: str, after: str
) -> str:
    """Return a table of settings that differ."""
    rows = [
        (
            setting_name(one["field"], one["name"]),
            setting_value(one["field"], one["before"], units),
            setting_value(one["field"], one["after"], units),
        )
        for one in found[:_MOST]
    ]
    return markup.table("Changes", ("Setting", before, after), rows, wide=(1, 2))


def _timeouts(report: Report) -> None:
    numbers.heading(
        "Longest phases against timeouts",
        "The longest time each phase took, beside the configured timeouts that watch it. Near "
        "100 % a rank is about to be killed while nothing is wrong with it. Some timeouts watch "
        "only a part of a phase, so the share is an upper bound.",
        source.query("runs/{run}/report", run=report["run"]),
        key="timeouts",
    )
    if not report["longest_phases"]:
        st.caption("No phase has ended yet.")
        return
    rows = [
        (
            plain(one["phase"]),
            duration(one["longest_ns"]),
            f"rank {one['rank']}",
            timeout_name(one["timeout"]),
            UNKNOWN if one["timeout_ns"] is None else duration(one["timeout_ns"]),
            UNKNOWN if one["ratio"] is None else percent(one["ratio"]),
            "near" if (one["ratio"] or 0.0) >= _NEAR else "",
        )
        for one in sorted(report["longest_phases"], key=lambda item: -(item["ratio"] or 0.0))
    ]
    columns = ("Phase", "#Longest", "Seen on", "Timeout", "#Limit", "#Share", "")
    st.html(markup.table("Longest phases", columns, rows))
