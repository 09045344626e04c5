"""The Fleet page: which run loses time, to what, and whether software or machines are at fault."""

from collections.abc import Sequence

import streamlit as st

from headway import metrics
from headway.dashboard import markup, sentences, source, totals
from headway.dashboard.views import reader
from headway.wording import UNKNOWN, count, duration, plain, ratio_range, when


@reader.framed
def page() -> None:
    """Draw the page and keep it fresh."""
    st.title("Fleet")
    reader.refreshed(_show)


def _show() -> None:
    runs = source.runs()
    if not runs:
        reader.missing(reader.NO_RUN, reader.START_ONE)
        st.caption(reader.LOOKS_AGAIN)
        return
    _stats(runs)
    st.header("Runs", anchor=False)
    columns = (
        "Run",
        "State",
        "Where the time went",
        "#Training goodput",
        "#Infrastructure goodput",
        "#Elapsed",
        "#Attempts",
        "#Highest step",
        "#Checkpoint age",
        "Started",
    )
    st.html(markup.table("Runs", columns, [_row(run) for run in runs]))
    used = {name for run in runs for name in markup.in_order(run["categories"])}
    st.html(markup.legend(markup.in_order(dict.fromkeys(used, 1))))
    st.caption(
        f"As of {when(max(run['as_of'] for run in runs), reader.zone())}. "
        "Idle GPUs outside runs are not seen."
    )


def _stats(runs: Sequence[totals.Report]) -> None:
    weight = "elapsed time" + (" times its GPUs" if totals.knows_gpus(runs) else "")
    with st.container(horizontal=True, gap="small", key="stats"):
        for title, ratio, meaning in (
            ("Training goodput", "training_goodput", metrics.TRAINING_GOODPUT),
            ("Infrastructure goodput", "infrastructure_goodput", metrics.INFRASTRUCTURE_GOODPUT),
        ):
            found = totals.weighted(runs, ratio)
            st.metric(
                title,
                UNKNOWN if found is None else ratio_range(*found),
                border=True,
                help=f"{meaning} Over all runs, each weighted by its {weight}.",
            )
        st.metric("Runs", count(len(runs)), border=True, help="Runs that the collector knows.")
        st.metric(
            "Live", count(len(totals.live(runs))), border=True, help="Runs that have not ended."
        )
        st.metric(
            "Open incidents",
            count(sum(run["open_incidents"] for run in runs)),
            border=True,
            help="Incidents that no attempt has put behind it yet.",
        )


def _row(run: totals.Report) -> tuple[markup.Cell, ...]:
    return (
        markup.run_link(run["run"], run["run"]),
        plain(run["state"]),
        markup.share_bar(run["categories"]) if run["elapsed_ns"] else "",
        ratio_range(**run["training_goodput"]),
        ratio_range(**run["infrastructure_goodput"]),
        duration(run["elapsed_ns"]),
        count(run["attempts"]),
        sentences.progress(run),
        sentences.checkpoint_age(run),
        when(run["start"], reader.zone()),
    )
