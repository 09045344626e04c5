"""The tab that sets a run beside another one, or two configurations or times of it."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from headway.comparison import words
from headway.dashboard import markup, numbers, source
from headway.dashboard.source import RunData
from headway.dashboard.views import reader
from headway.dashboard.views.run_panels.settings import changes

_OTHER = "other"
_SECOND = 10**9
RUNS, CONFIGURATIONS, TIMES = "Runs", "Configurations", "Before and after"
"""What is compared, as the address says it, too."""


def show(data: RunData) -> None:
    """Show a run beside the one that is chosen, or what it was beside what it is."""
    report = data.report
    kind = st.segmented_control(
        "Compare",
        [RUNS, CONFIGURATIONS, TIMES],
        default=RUNS,
        required=True,
        key="compare",
        bind="query-params",
    )
    asked = _SIDES[kind or RUNS](report["run"])
    if asked is not None:
        _show(asked)


def _two_runs(run: str) -> dict[str, Any] | None:
    known = [one["run"] for one in source.runs() if one["run"] != run]
    other = st.selectbox(
        "Compare with",
        known,
        index=None,
        key=_OTHER,
        bind="query-params",
        accept_new_options=True,
        placeholder="Choose a run, or type the name of one",
    )
    if other:
        return {"one_run": run, "other_run": other}
    if not known:
        st.caption("There is no other run yet.")
    return None


def _two_configurations(run: str) -> dict[str, Any] | None:
    attempts = source.answer("runs/{run}/configuration", run=run)["attempts"]
    numbered = [str(one["number"]) for one in reversed(attempts)]
    if len(numbered) < 2:
        st.caption("The run has a single attempt, and so a single configuration.")
        return None
    with st.container(horizontal=True, gap="small", key="two-attempts"):
        one, other = (
            st.selectbox(label, numbered, index=place, key=key, bind="query-params", width=220)
            for label, place, key in (
                ("Configuration of attempt", 0, "one_attempt"),
                ("Against that of attempt", len(numbered) - 1, "other_attempt"),
            )
        )
    st.caption("Each with all the time for which it held: until an attempt changed a setting.")
    return {
        "one_run": run,
        "one_attempt": int(one),
        "other_run": run,
        "other_attempt": int(other),
    }


def _two_times(run: str) -> dict[str, Any] | None:
    zone = reader.zone()
    moment = st.datetime_input(
        "Until when, and since",
        value=None,
        key="moment",
        bind="query-params",
        help=f"In {zone}. A is the run since then, B the run until then.",
        width=260,
    )
    if moment is None:
        st.caption("Choose when something changed: a driver, a network, a data set.")
        return None
    then = round(moment.replace(tzinfo=zone).timestamp()) * _SECOND
    return {"one_run": run, "one_start": then, "other_run": run, "other_end": then}


_SIDES: Mapping[str, Callable[[str], dict[str, Any] | None]] = {
    RUNS: _two_runs,
    CONFIGURATIONS: _two_configurations,
    TIMES: _two_times,
}


def _show(asked: Mapping[str, Any]) -> None:
    answer = source.answer("comparison", **asked)
    numbers.heading(
        "Side by side",
        "The same figures of both sides. A figure is a range where time without evidence makes it "
        f"one, and so is then the difference. {words.CHANCE}",
        source.query("comparison", **asked),
        key="comparison",
    )
    names = answer["one"]["name"], answer["other"]["name"]
    st.html(markup.facts([f"A: {names[0]}", f"B: {names[1]}"]))
    columns = ("Figure", "#A", "#B", "#A - B", "#By chance", "A is")
    rows = [
        (
            one["title"],
            words.value(one["one"], one["unit"]),
            words.value(one["other"], one["unit"]),
            words.difference(one["difference"], one["unit"]),
            words.chance(one["difference"], one["unit"]),
            words.verdict(one),
        )
        for one in answer["figures"]
        if words.is_told(one)
    ]
    st.html(markup.table("Comparison", columns, rows))
    for doubt in answer["doubts"]:
        st.caption(doubt)
    st.subheader("Settings that differ", anchor=False)
    if answer["settings"]:
        # Answered as what changed from B to A; read like the table above.
        sides = [
            {**one, "before": one["after"], "after": one["before"]} for one in answer["settings"]
        ]
        st.html(changes(sides, answer["units"], "A", "B"))
    else:
        st.caption("None that was recorded.")
