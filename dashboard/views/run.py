"""The Run page: how much of one run's time became progress, and what happened to the rest."""

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types
import streamlit as st

from headway.dashboard import markup, sentences, source
from headway.dashboard.figures import attempts, checkpoints, ledger, recovery, steps
from headway.dashboard.figures.style import Report
from headway.dashboard.palette import EDGE
from headway.dashboard.source import RunData
from headway.dashboard.totals import in_gpu_time
from headway.dashboard.views import reader
from headway.wording import (
    UNKNOWN,
    count,
    counted,
    duration,
    flag,
    percent,
    plain,
    ratio_range,
    when,
)

_PARAMETER = "run"
_MOST_INCIDENTS = 50
_CHART = {"displayModeBar": False}


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
    st.caption(
        f"{plain(report['state']).capitalize()}. "
        + sentences.data_age(report, reader.now(), source.refresh_interval(), reader.zone())
    )
    _stats(report)
    _ledger(report)
    _timeline(data)
    _recovery(report)
    _problems(report)


def _stats(report: Report) -> None:
    with st.container(horizontal=True, gap="small", key="stats"):
        for title, ratio in (
            ("Training goodput", "training_goodput"),
            ("Infrastructure goodput", "infrastructure_goodput"),
        ):
            st.metric(
                title,
                ratio_range(**report[ratio]),
                delta=sentences.ratio_terms(report, ratio),
                delta_color="off",
                delta_arrow="off",
                border=True,
                help=sentences.definition(report, ratio),
            )
        restarts = sentences.restarts(report)
        for title, value, detail, meaning in (
            (
                "Highest step",
                sentences.progress(report),
                f"{counted(report['steps']['rework'], 'step')} done again",
                "Highest optimizer step ever completed; rework is steps that ran more than once.",
            ),
            (
                "Attempts",
                count(report["attempts"]),
                counted(restarts, "restart"),
                "Tries of the group to train. Failed starts, which end before their first step: "
                f"{count(report['failed_starts'])}.",
            ),
            (
                "Checkpoint age",
                sentences.checkpoint_age(report),
                f"{counted(report['steps_at_risk'], 'step')} at risk",
                "Time since the newest durable checkpoint was completed, and the surviving steps "
                "that a failure now would lose.",
            ),
        ):
            st.metric(
                title,
                value,
                delta=detail,
                delta_color="off",
                delta_arrow="off",
                border=True,
                help=meaning,
            )

    if in_gpu_time(report):
        gpu_time = report["gpu_time"]
        held = "" if gpu_time["gpus"] is None else f" ({count(gpu_time['gpus'])} held)"
        st.caption(
            f"In GPU time{held}: training {ratio_range(**gpu_time['training_goodput'])}, "
            f"infrastructure {ratio_range(**gpu_time['infrastructure_goodput'])}."
        )


def _ledger(report: Report) -> None:
    st.header("Where the time went", anchor=False)
    if not report["elapsed_ns"]:
        st.caption("Nothing yet: the run has just begun.")
        return
    _plot(
        ledger.waterfall(report),
        "ledger",
        "Waterfall from elapsed time through every loss to productive time.",
    )
    elapsed = report["elapsed_ns"]
    rows = [
        (
            markup.key(category),
            duration(ns),
            percent(ns / elapsed),
            _parts(report, category.name),
            category.description,
        )
        for category, ns in ledger.ledger_rows(report)
    ]
    with st.expander("What each category means, and its numbers"):
        columns = ("Category", "#Time", "#Share", "Of which", "Meaning")
        total = ("Elapsed", duration(elapsed), percent(1.0), "", "The sum of all categories.")
        st.html(markup.table("Ledger", columns, [*rows, total], wide=(3, 4)))


def _parts(report: Report, name: str) -> str:
    parts = report["parts"].get(name, {})
    return ", ".join(f"{plain(part)} {duration(ns)}" for part, ns in sorted(parts.items()) if ns)


def _timeline(data: RunData) -> None:
    report = data.report
    zone = reader.zone()
    st.header("Attempts", anchor=False)
    if report["attempt_list"]:
        _plot(
            attempts.attempts_lane(report, data.intervals, zone),
            "attempts",
            "One row per attempt over time, coloured by ledger category.",
        )
        if len(report["attempt_list"]) > attempts.MOST_ROWS:
            st.caption(f"The newest {attempts.MOST_ROWS} of {count(report['attempts'])}.")
    else:
        st.caption("No attempt has been seen yet.")
    st.header("Steps", anchor=False)
    if data.points:
        _plot(
            steps.steps_over_time(report, data.points, zone),
            "steps",
            "Completed steps over time; every rollback is a fall.",
        )
    else:
        st.caption("No step has been completed yet.")
    if report["attempt_list"] or data.points:
        st.caption(f"Times in {zone}.")


def _recovery(report: Report) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        st.header("Rollback distance", anchor=False)
        if any(one["rollback_steps"] is not None for one in report["incidents"]):
            _plot(
                recovery.rollback_distance(report),
                "rollback",
                "Steps thrown away by each incident.",
            )
        elif report["incidents"]:
            st.caption("Not known before training goes on.")
        else:
            st.caption("No incident so far: nothing was rolled back.")
    with right:
        st.header("Checkpoint freshness", anchor=False)
        if checkpoints.freshness(report):
            _plot(
                checkpoints.checkpoint_freshness(report, reader.zone()),
                "freshness",
                "Age of the newest durable checkpoint over time.",
            )
        st.caption(sentences.checkpoint(report))
        st.caption(sentences.checkpoint_efficiency(report))
    st.header("Restart causes", anchor=False)
    causes = sorted({cause for found in report["restarts"].values() for cause in found})
    if causes:
        rows = [
            (
                plain(layer).capitalize(),
                *(count(found.get(cause, 0)) for cause in causes),
            )
            for layer, found in sorted(report["restarts"].items())
        ]
        columns = ("Recovered by", *(f"#{plain(cause)}" for cause in causes))
        st.html(markup.table("Restart causes", columns, rows, narrow=True))
    else:
        st.caption("No restart so far.")
    if report["incidents"]:
        _incidents(report)


def _incidents(report: Report) -> None:
    st.header("Incidents", anchor=False)
    columns = (
        "#No.",
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
            str(one["number"]),
            when(one["opened"], reader.zone()),
            one["state"],
            plain(one["cause"]),
            UNKNOWN if one["layer"] is None else plain(one["layer"]),
            _suspect(one),
            "not yet" if one["recovered"] is None else duration(one["recovered"] - one["opened"]),
            UNKNOWN if one["rollback_steps"] is None else counted(one["rollback_steps"], "step"),
            next(iter(one["evidence"]), ""),
        )
        for one in reversed(report["incidents"][-_MOST_INCIDENTS:])
    ]
    st.html(markup.table("Incidents", columns, rows, wide=(8,)))
    if len(report["incidents"]) > len(rows):
        st.caption(f"The newest {len(rows)} of {count(len(report['incidents']))}.")


def _suspect(incident: Mapping[str, Any]) -> str:
    """Return whom the evidence accuses; of a preemption, for one, there is nobody."""
    if incident["suspect_rank"] is not None:
        return f"rank {incident['suspect_rank']}"
    return str(incident["suspect_node"] or "none")


def _problems(report: Report) -> None:
    st.header("Data quality", anchor=False)
    if not report["problems"] and not report["dropped_events"] and not report["flags"]:
        st.caption("No event was dropped, and nothing in the events contradicts itself.")
        return
    if report["dropped_events"]:
        st.caption(f"{counted(report['dropped_events'], 'event')} lost by their producers.")
    rows = [(plain(one["kind"]), count(one["count"]), one["detail"]) for one in report["problems"]]
    rows += [(flag(name), "", "") for name in report["flags"]]
    if rows:
        st.html(markup.table("Problems", ("Problem", "#Count", "Detail"), rows, wide=(2,)))


def _plot(figure: go.Figure, key: str, description: str) -> None:
    look = reader.look()
    ink = look.text
    figure.update_layout(
        font_color=ink, hoverlabel={"font_color": ink, "bgcolor": look.panel, "bordercolor": EDGE}
    )
    figure.update_xaxes(tickfont_color=ink, title_font_color=ink)
    figure.update_yaxes(tickfont_color=ink, title_font_color=ink)
    st.plotly_chart(figure, key=key, config=_CHART, alt=description)
