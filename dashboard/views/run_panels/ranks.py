"""The tab on the ranks of a run: all of them over time, and as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from headway.course.rank_lanes import LEFT, LOSSES
from headway.dashboard import markup, numbers, rank_canvas, source
from headway.dashboard.figures.style import Report
from headway.dashboard.source import RunData
from headway.dashboard.views import reader
from headway.wording import count, counted, duration, percent, plain, when

_MILLISECOND = 1_000_000
_COLUMNS = 1_200
_SHOWN = 25
_CANVAS = "rank-lanes"
_FROM, _TO = "from", "to"
_KINDS = ("rank", "node")


def show(data: RunData) -> None:
    """Show what each rank did over time."""
    report = data.report
    by = st.segmented_control(
        "One row for each",
        _KINDS,
        default=_KINDS[0],
        required=True,
        key="rows",
        bind="query-params",
    )
    stretch = _stretch()
    asked = {"by": by, "columns": _COLUMNS, **stretch}
    numbers.heading(
        "Ranks over time",
        "What each rank recorded of itself: steps, waits, phases. What it left open is told by "
        "the ledger of its group. In a column the category with most time is shown, where stalls, "
        "restarts and time after a rank had left count four times, so that short ones stay "
        "visible.",
        source.query("runs/{run}/ranks", run=report["run"], **asked),
        key="ranks",
    )
    answer = source.answer("runs/{run}/ranks", run=report["run"], **asked)
    if not answer["rows"]:
        st.caption("No rank has been seen yet.")
        return
    zone = str(reader.zone())
    rank_canvas.draw(
        rank_canvas.picture(answer, report["incidents"], zone, zoomed=bool(stretch)),
        key=_CANVAS,
        on_stretch=lambda: _choose(answer["start"], answer["end"]),
    )
    st.caption(_size(report, answer))
    with st.expander("As a table"):
        _table(answer["rows"])
        _incidents(report)
    if report["stragglers"]:
        _stragglers(report)


def _stretch() -> dict[str, int]:
    """Return the part of the run that the address names, in UTC ns; nothing for all of it."""
    found = {}
    for name, parameter in (("start", _FROM), ("end", _TO)):
        given = st.query_params.get(parameter, "")
        if not given.isdecimal() or len(given) > len("1000000000000"):
            return {}
        found[name] = int(given) * _MILLISECOND
    return found if found["start"] < found["end"] else {}


def _choose(start: int, end: int) -> None:
    """Take over the part that was chosen on the canvas, as shares of what it showed."""
    shares = st.session_state[_CANVAS].get("stretch")
    if not shares:
        for parameter in (_FROM, _TO):
            st.query_params.pop(parameter, None)
        return
    first, last = (start + round((end - start) * share) for share in shares)
    st.query_params[_FROM] = str(max(first, 0) // _MILLISECOND)
    st.query_params[_TO] = str(-(-last // _MILLISECOND))


def _size(report: Report, answer: Mapping[str, Any]) -> str:
    """Return how much is shown: ranks, columns, and what has no row."""
    ranks = sum(len(row["ranks"]) for row in answer["rows"])
    column = (answer["end"] - answer["start"]) // answer["columns"]
    said = f"{counted(ranks, 'rank')} seen, one column is {duration(column)}."
    world = max((one["world_size"] or 0 for one in report["attempt_list"]), default=0)
    if world > ranks:
        said += f" The other {count(world - ranks)} of the group recorded nothing."
    if len(answer["rows"]) < ranks:
        said += f" They share {count(len(answer['rows']))} rows."
    return f"{said} Times in {reader.zone()}."


def _table(rows: Sequence[Mapping[str, Any]]) -> None:
    names = ["productive", LEFT, *LOSSES, "data_wait", "checkpoint_save"]
    shown = [name for name in names if any(row["times"].get(name) for row in rows)]
    worst = sorted(rows, key=lambda row: row["times"].get("productive", 0))[:_SHOWN]
    columns = ("Ranks", *(f"#{rank_canvas.title_of(name)}" for name in shown))
    body = []
    for row in worst:
        whole = sum(row["times"].values())
        cells = (
            f"{duration(row['times'].get(name, 0))} ({percent(row['times'].get(name, 0) / whole)})"
            for name in shown
        )
        body.append((rank_canvas.text(row), *cells))
    st.html(markup.table("Ranks", columns, body))
    if len(rows) > len(body):
        st.caption(
            f"The {len(body)} of {counted(len(rows), 'row')} with least productive time; all of "
            "them with the question under About."
        )


def _incidents(report: Report) -> None:
    marked = report["incidents"][-rank_canvas.MOST_MARKS :]
    rows = [
        (
            markup.link(
                markup.address("incident", incident=one["incident"]),
                f"Incident {one['number']}",
            ),
            when(one["opened"], reader.zone()),
            plain(one["cause"]),
            "" if one["suspect_rank"] is None else f"rank {one['suspect_rank']}",
        )
        for one in reversed(marked[-_SHOWN:])
    ]
    if rows:
        st.html(markup.table("Marked incidents", ("", "Opened", "Cause", "Suspect"), rows))
        if len(marked) > len(rows):
            st.caption(f"The newest {len(rows)}; the others are on the tab Incidents.")


def _stragglers(report: Report) -> None:
    numbers.heading(
        "Ranks that hold the others up",
        "Ranks that usually take a tenth longer than the median of their peers, or more, in the "
        "newest steps.",
        source.query("runs/{run}/report", run=report["run"]),
        key="stragglers",
    )
    rows = [
        (
            f"rank {one['rank']}",
            str(one["node"] or ""),
            plain(one["kind"]),
            duration(one["excess_ns"]),
            duration(one["peers_ns"]),
        )
        for one in report["stragglers"][:_SHOWN]
    ]
    columns = ("Rank", "Node", "In", "#Longer by", "#Peers take")
    st.html(markup.table("Stragglers", columns, rows, narrow=True))
