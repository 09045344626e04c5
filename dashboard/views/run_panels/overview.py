"""What is above the tabs: the numbers of a run, and where its time went."""

import streamlit as st

from headway.dashboard import markup, numbers, sentences, source
from headway.dashboard.figures import ledger
from headway.dashboard.figures.style import Report
from headway.dashboard.views import reader
from headway.dashboard.views.plots import plain_bars
from headway.wording import count, counted, duration, percent, plain, ratio_range


def show_numbers(report: Report) -> None:
    """Show what one wants to know first."""
    query = source.query("runs/{run}/report", run=report["run"])
    with numbers.row("run") as row:
        for title, ratio in (
            ("Training goodput", "training_goodput"),
            ("Infrastructure goodput", "infrastructure_goodput"),
        ):
            row.number(
                title,
                ratio_range(**report[ratio]),
                delta=sentences.ratio_terms(report, ratio),
                definition=sentences.definition(report, ratio),
                query=query,
            )
        row.number(
            "Highest step",
            count(report["steps"]["highest"]),
            delta=sentences.beside_highest_step(report),
            definition="Highest optimizer step ever completed, of the target where one is "
            "recorded; steps done again ran more than once.",
            query=query,
        )
        value, detail = sentences.arrival(report, reader.now())
        row.number(
            "Time to target" if report["end"] is None else "Time it took",
            value,
            delta=detail,
            definition="How long until the run reaches its target step if it goes on as before, "
            "stops included: between the rate of the whole run and that of its last quarter, of "
            "at least an hour. Of a run that has ended, the time from begin to end, and the steps "
            "that lasted per hour of it.",
            query=query,
        )
        row.number(
            "Attempts",
            count(report["attempts"]),
            delta=counted(sentences.restarts(report), "restart"),
            definition="Tries of the group to train. Failed starts, which end before their first "
            f"step: {count(report['failed_starts'])}.",
            query=query,
        )
        row.number(
            "Checkpoint age",
            sentences.checkpoint_age(report),
            delta=f"{counted(report['steps_at_risk'], 'step')} at risk",
            definition="Time since the newest durable checkpoint was completed, and the surviving "
            "steps that a failure now would lose.",
            query=query,
        )
    if sentences.in_gpu_time(report):
        gpu_time = report["gpu_time"]
        held = "" if gpu_time["gpus"] is None else f" ({count(gpu_time['gpus'])} held)"
        st.caption(
            f"In GPU time{held}: training {ratio_range(**gpu_time['training_goodput'])}, "
            f"infrastructure {ratio_range(**gpu_time['infrastructure_goodput'])}."
        )


def show_links(report: Report) -> None:
    """Show the addresses that the run recorded, and its labels."""
    links = [
        markup.outside_link(str(address), plain(name).capitalize())
        for name, address in sorted(report["links"].items())
    ]
    labels = [f"{plain(name)}: {value}" for name, value in sorted(report["labels"].items())]
    if links or labels:
        st.html(markup.facts([*links, *labels]))


def show_ledger(report: Report) -> None:
    """Show the way from elapsed to productive time."""
    numbers.heading(
        "Where the time went",
        "Every nanosecond of the run lies in exactly one category; together they are 100 %. "
        "Unattributed is time without evidence either way.",
        source.query("runs/{run}/report", run=report["run"]),
        key="ledger",
    )
    if not report["elapsed_ns"]:
        st.caption("Nothing yet: the run has just begun.")
        return
    plain_bars(
        ledger.waterfall(report),
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
