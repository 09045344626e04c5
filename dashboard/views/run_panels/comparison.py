"""The tab that sets a run beside another one."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from headway.dashboard import markup, numbers, source
from headway.dashboard.source import RunData
from headway.dashboard.views.run_panels.settings import changes
from headway.wording import UNKNOWN, duration, ratio_range

_PARAMETER = "other"


def show(data: RunData) -> None:
    """Show a run beside the one that is chosen."""
    report = data.report
    known = [one["run"] for one in source.runs() if one["run"] != report["run"]]
    other = st.selectbox(
        "Compare with",
        known,
        index=None,
        key=_PARAMETER,
        bind="query-params",
        accept_new_options=True,
        placeholder="Choose a run, or type the name of one",
    )
    if not other:
        if not known:
            st.caption("There is no other run yet.")
        return
    answer = source.answer("runs/{run}/comparison", run=report["run"], other=other)
    query = source.query("runs/{run}/comparison", run=report["run"], other=other)
    numbers.heading(
        "Side by side",
        "The same figures of both runs. A figure is a range where time without evidence makes it "
        "one, and so is then the difference.",
        query,
        key="comparison",
    )
    one_title, other_title = answer["run"], answer["other"]
    columns = ("Figure", f"#{one_title}", f"#{other_title}", "#Difference", "")
    rows = [
        (
            one["title"],
            figure(one["one"], one["unit"]),
            figure(one["other"], one["unit"]),
            difference(one["difference"], one["unit"]),
            verdict(one),
        )
        for one in answer["figures"]
        if any(one[side]["low"] not in (None, 0) for side in ("one", "other"))
    ]
    st.html(markup.table("Comparison", columns, rows))
    st.subheader("Settings that differ", anchor=False)
    if answer["settings"]:
        st.html(changes(answer["settings"], answer["units"], other_title, one_title))
    else:
        st.caption("None that was recorded.")


def figure(span: Mapping[str, Any], unit: str) -> str:
    """Return a figure as people read it, with its unit."""
    low, high = span["low"], span["high"]
    if low is None or high is None:
        return UNKNOWN
    if unit == "ratio":
        return ratio_range(low, high)
    if unit == "ns":
        return duration(round(low))
    return number(low)


def number(value: float) -> str:
    """Return a number with its thousands apart: `1,514`, `0.25`, `3.142`."""
    return f"{value:,.0f}" if abs(value) >= 1_000 or value == int(value) else f"{value:.4g}"


def difference(span: Mapping[str, Any], unit: str) -> str:
    """Return a difference with its sign; that of shares is in percentage points."""
    low, high = span["low"], span["high"]
    if low is None or high is None:
        return UNKNOWN
    if unit == "ratio":
        first, last = f"{low * 100:+.1f}", f"{high * 100:+.1f}"
        return f"{first} pp" if first == last else f"{first} to {last} pp"
    if not low:
        return "0"
    sign = "+" if low > 0 else "-"
    size = duration(round(abs(low))) if unit == "ns" else number(abs(low))
    return f"{sign}{size}"


def verdict(one: Mapping[str, Any]) -> str:
    """Return whether the first run is better, where that can be said."""
    low, high = one["difference"]["low"], one["difference"]["high"]
    if one["higher_is_better"] is None or low is None or low <= 0 <= high:
        return ""
    return "better" if (low > 0) == one["higher_is_better"] else "worse"
