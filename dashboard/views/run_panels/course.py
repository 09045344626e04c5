"""The tab on the course of a run: its attempts, its steps and how fast they came."""

import streamlit as st

from headway.dashboard import numbers, source
from headway.dashboard.figures import attempts, pace, steps
from headway.dashboard.source import RunData
from headway.dashboard.views import reader
from headway.dashboard.views.plots import plot
from headway.wording import count


def show(data: RunData) -> None:
    """Show attempts, steps and pace over time."""
    report, zone = data.report, reader.zone()
    run = report["run"]
    numbers.heading(
        "Attempts",
        "One row per try of the group to train, coloured by what its time became.",
        source.query("runs/{run}/intervals", run=run),
        key="attempts",
    )
    if report["attempt_list"]:
        plot(
            attempts.attempts_lane(report, data.intervals, zone),
            "attempts",
            "One row per attempt over time, coloured by ledger category.",
        )
        if len(report["attempt_list"]) > attempts.MOST_ROWS:
            st.caption(f"The newest {attempts.MOST_ROWS} of {count(report['attempts'])}.")
    else:
        st.caption("No attempt has been seen yet.")
    numbers.heading(
        "Steps",
        "Completed optimizer steps; a rollback is a fall to the step that was restored.",
        source.query("runs/{run}/steps", run=run, points=2_000),
        key="steps",
    )
    if not data.points:
        st.caption("No step has been completed yet.")
        return
    plot(
        steps.steps_over_time(report, data.points, zone),
        "steps",
        "Completed steps over time; every rollback is a fall.",
    )
    _pace(data)
    st.caption(f"Times in {zone}.")


def _pace(data: RunData) -> None:
    report, zone = data.report, reader.zone()
    answer = source.answer("runs/{run}/pace", run=report["run"])
    columns, query = answer["columns"], source.query("runs/{run}/pace", run=report["run"])
    left, right = st.columns(2, gap="large")
    with left:
        numbers.heading(
            "Step time and data wait",
            "A step's own time on the rank that the group waits for, and the wait for data before "
            "it, per column of time. A stop is a gap and no slow step.",
            query,
            key="step-time",
        )
        plot(pace.step_time(report, columns, zone), "step-time", "Time of a step over time.")
    with right:
        numbers.heading(
            "Throughput",
            "Completed steps per column of time, stops and steps that were later rolled back "
            "included; as tokens where the run recorded how many a step has (tokens_per_step).",
            query,
            key="throughput",
        )
        plot(
            pace.throughput(report, columns, answer["tokens_per_step"], zone),
            "throughput",
            "Throughput over time.",
        )
    numbers.heading(
        "Loss",
        "The last loss of each column of time, as the lowest rank that recorded any told it.",
        query,
        key="loss",
    )
    if pace.has_loss(columns):
        plot(pace.loss(report, columns, zone), "loss", "Loss over time.")
    else:
        st.caption("No step told a loss. Set `loss` of the step to a float to see it here.")
