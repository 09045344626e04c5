"""The tab on the incidents of a run: each with its cause, and how restarts ended them."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import streamlit as st

from headway.dashboard import markup, numbers, source
from headway.dashboard.figures.style import Report
from headway.dashboard.source import RunData
from headway.dashboard.views import reader
from headway.wording import UNKNOWN, count, counted, duration, plain, titled, when

_MOST = 25


def show(data: RunData) -> None:
    """Show what broke and who brought the run back."""
    report = data.report
    left, right = st.columns(2, gap="large")
    with left:
        _restarts(report)
    with right:
        _budgets(report)
    _listed(report)


def _listed(report: Report) -> None:
    numbers.heading(
        "Incidents",
        "From a fault until an attempt holds; a new fault before that joins it.",
        source.query("incidents", run=report["run"]),
        key="incidents",
    )
    if not report["incidents"]:
        st.caption("No incident so far.")
        return
    columns = (
        "No.",
        "Opened",
        "State",
        "Cause",
        "Recovered by",
        "Suspect",
        "#Recovered after",
        "#Rolled back",
        "First evidence",
    )
    rows = [
        (
            markup.link(markup.address("incident", incident=one["incident"]), str(one["number"])),
            when(one["opened"], reader.zone()),
            one["state"],
            plain(one["cause"]),
            UNKNOWN if one["layer"] is None else plain(one["layer"]),
            suspect(one),
            "not yet" if one["recovered"] is None else duration(one["recovered"] - one["opened"]),
            UNKNOWN if one["rollback_steps"] is None else counted(one["rollback_steps"], "step"),
            next(iter(one["evidence"]), ""),
        )
        for one in reversed(report["incidents"][-_MOST:])
    ]
    st.html(markup.table("Incidents", columns, rows, wide=(8,)))
    if len(report["incidents"]) > len(rows):
        all_of_them = markup.address("incidents", run=report["run"])
        text = f"All {count(len(report['incidents']))} incidents"
        st.html(
            markup.facts([f"The newest {len(rows)} are shown.", markup.link(all_of_them, text)])
        )


def suspect(incident: Mapping[str, Any]) -> str:
    """Return whom the evidence accuses; of a preemption, for one, there is nobody."""
    if incident["suspect_rank"] is not None:
        return f"rank {incident['suspect_rank']}"
    return str(incident["suspect_node"] or "none")


def _restarts(report: Report) -> None:
    numbers.heading(
        "Restart causes",
        "Restarts by what had broken the training and by the layer that brought it back.",
        source.query("runs/{run}/report", run=report["run"]),
        key="restarts",
    )
    by_layer = report["restarts"]
    totals: Counter[str] = Counter()
    for found in by_layer.values():
        totals.update(found)
    if not totals:
        st.caption("No restart so far.")
        return
    layers = sorted(by_layer)
    rows = [
        (
            titled(cause),
            *(count(number) if (number := by_layer[layer].get(cause)) else "" for layer in layers),
            count(total),
        )
        for cause, total in sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    ]
    columns = ("Broken by", *(f"#{titled(layer)}" for layer in layers), "#Restarts")
    st.html(markup.table("Restart causes", columns, rows, narrow=True))


def _budgets(report: Report) -> None:
    numbers.heading(
        "Restarts left",
        "Restarts that each layer may still make before it gives up and the next layer has to.",
        source.query("runs/{run}/report", run=report["run"]),
        key="budgets",
    )
    if not report["restart_budgets"]:
        st.caption(
            "No layer has told its budget. `headway run`, the NVRx wrapper and ft_launcher tell it."
        )
        return
    rows = [
        (
            plain(layer).capitalize(),
            count(one["remaining"]),
            UNKNOWN if one["limit"] is None else count(one["limit"]),
            "none left" if one["remaining"] == 0 else "",
        )
        for layer, one in report["restart_budgets"].items()
    ]
    st.html(markup.table("Restarts left", ("Layer", "#Left", "#Limit", ""), rows, narrow=True))
