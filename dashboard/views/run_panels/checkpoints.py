"""The tab on checkpoints: how fresh, what is at risk, and how they are written."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from headway.dashboard import numbers, sentences, source
from headway.dashboard.figures import checkpoints, recovery, saves, steps
from headway.dashboard.figures.style import Report
from headway.dashboard.source import RunData
from headway.dashboard.views import reader
from headway.dashboard.views.plots import plot
from headway.wording import UNKNOWN, count, duration, percent

_RECORD = (
    "No checkpoint was recorded. Record CheckpointScheduled and CheckpointFinalized where the "
    "training saves; without them every step is at risk."
)


def show(data: RunData) -> None:
    """Show the checkpoints of a run."""
    report = data.report
    st.caption(sentences.checkpoint(report))
    if not report["checkpoints"]:
        st.caption(_RECORD)
        return
    left, right = st.columns(2, gap="large")
    query = source.query("runs/{run}/checkpoints", run=report["run"])
    with left:
        numbers.heading(
            "Checkpoint freshness",
            "Age of the newest durable checkpoint: one whose completion was observed. With very "
            "many checkpoints the highest age of each stretch is drawn.",
            query,
            key="freshness",
        )
        if checkpoints.freshness(report):
            plot(
                checkpoints.checkpoint_freshness(report, reader.zone()),
                "freshness",
                "Age of the newest durable checkpoint over time.",
            )
        else:
            st.caption("No checkpoint has been durable yet.")
    with right:
        numbers.heading(
            "Steps at risk",
            "Steps that no durable checkpoint held at each time: what a failure would have lost.",
            query,
            key="at-risk",
        )
        if data.points:
            plot(
                steps.risk_over_time(report, data.points, reader.zone()),
                "at-risk",
                "Steps at risk over time.",
            )
        else:
            st.caption("No step has been completed yet.")
    _writing(report)
    _rollbacks(report)


def _writing(report: Report) -> None:
    writing = report["checkpoint_writing"]
    query = source.query("runs/{run}/report", run=report["run"])
    numbers.heading(
        "Writing beside the training",
        "A save costs the training the time it waits. A write in the background costs nothing "
        "until it takes as long as the time to the next save; then saves queue up.",
        query,
        key="writes-about",
    )
    ratio = writing["write_to_interval"]
    with numbers.row("writing") as row:
        row.number(
            "Checkpoint efficiency",
            percent(report["checkpoint_efficiency"]),
            definition="Share of the time without faults that saves left to training: "
            f"{report['formulas']['checkpoint_efficiency']['formula']}.",
            query=query,
        )
        row.number(
            "Training waits for a save",
            duration(_of(writing["blocking_ns"], "p50")),
            delta=f"longest {duration(_of(writing['blocking_ns'], 'max'))}",
            definition="Time for which a save blocks the training; the median.",
            query=query,
        )
        row.number(
            "Write in the background",
            duration(_of(writing["background_ns"], "p50")),
            delta=f"longest {duration(_of(writing['background_ns'], 'max'))}",
            definition="From the moment training goes on until the checkpoint is complete; the "
            "median.",
            query=query,
        )
        row.number(
            "Write against interval",
            percent(ratio["mean"]),
            delta=f"highest {percent(ratio['max'])}",
            definition="Time of a background write as a share of the time to the next save. At "
            "100 % saves queue up.",
            query=query,
        )
        depth = writing["highest_queue_depth"]
        row.number(
            "Deepest queue",
            UNKNOWN if depth is None else count(depth),
            definition="Most saves that were handed over and not yet complete.",
            query=query,
        )
    plot(saves.write_times(report, reader.zone()), "writes", "Time of each save over time.")
    if any(save["queue_depth"] is not None for save in report["checkpoints"]):
        st.caption("Saves not yet complete when each was handed over")
        plot(saves.queue_depth(report, reader.zone()), "queue", "Queue of saves over time.")
    states = writing["saves"]
    st.caption(
        "Saves: "
        + ", ".join(f"{count(states[state])} {state}" for state in states if states[state])
    )


def _rollbacks(report: Report) -> None:
    numbers.heading(
        "Rollback distance",
        "Steps that each incident threw away: the highest step before it less the steps in the "
        "state that was restored.",
        source.query("incidents", run=report["run"]),
        key="rollback",
    )
    if any(one["rollback_steps"] is not None for one in report["incidents"]):
        plot(recovery.rollback_distance(report), "rollback", "Steps thrown away by each incident.")
    elif report["incidents"]:
        st.caption("Not known before training goes on.")
    else:
        st.caption("No incident so far: nothing was rolled back.")


def _of(distribution: Mapping[str, Any], part: str) -> int | None:
    value = distribution.get(part)
    return None if value is None else round(value)
