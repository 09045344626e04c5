"""The Recovery page: how often, how fast and at what cost runs come back, and which come slowly."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from headway.dashboard import markup, numbers, source
from headway.dashboard import recovery_rows as rows
from headway.dashboard.figures import recoveries as figures
from headway.dashboard.views import reader, window
from headway.dashboard.views.plots import plain_bars, plot
from headway.dashboard.views.window import Window
from headway.events import CAUSES
from headway.incidents.vocabulary import PHASE_COLOURS, PHASE_MEANINGS
from headway.wording import UNKNOWN, count, counted, duration, percent, plain

_BY: Mapping[str, str] = {"cause": "by_cause", "layer": "by_layer"}
_RATE = (
    "Recovered incidents, of those that are not open any more, with the 95 % interval of Wilson "
    "(1927)"
)
_MOST_SLOW = 15
_TIME = "Time from the fault to the first step after it."


@reader.framed
def page() -> None:
    """Draw the page and keep it fresh."""
    st.title("Recovery")
    if not reader.any_run():
        return
    meant = window.chosen("30 days")
    with st.container(horizontal=True, gap="small", vertical_alignment="top", key="of"):
        by, cause = _choices()
    reader.refreshed(lambda: _show(meant, by, cause))


def _choices() -> tuple[str, str | None]:
    """Show the controls and return by what to group, and the only cause that is meant."""
    by = st.segmented_control(
        "Group by",
        list(_BY),
        default="cause",
        required=True,
        key="group",
        bind="query-params",
    )
    cause = st.selectbox(
        "Cause", [window.ANY, *map(plain, CAUSES)], key="cause", bind="query-params", width=200
    )
    named = {plain(name): name for name in CAUSES}
    return by or "cause", named.get(cause or "")


def _show(meant: Window, by: str, cause: str | None) -> None:
    asked = {**meant.asked, "cause": cause}
    found = source.answer("recovery", **asked)
    if not found["incidents"]:
        reader.missing(
            f"No such incident opened in this time ({meant.name}).",
            "Choose a longer time or any cause. Runs and their goodput are on the Fleet page.",
        )
        return
    query, groups = source.query("recovery", **asked), found[_BY[by]]
    st.html(markup.lead(rows.headline(found)))
    st.caption(f"{meant.words(found)}, by when incidents opened.")
    _stats(found, query)
    left, right = st.columns(2, gap="large")
    with left:
        numbers.heading(
            "How long recoveries take",
            f"{_TIME} Each curve rises to the share of recoveries that took at most so long "
            "(ECDF), of the most frequent groups; the number of recoveries is in brackets.",
            query,
            key="curves",
        )
        if any(one["curve"]["ns"] for one in groups.values()):
            plot(
                figures.curves(groups),
                "recovery-curves",
                "Share of recoveries by the time they took.",
            )
        else:
            st.caption("No incident has recovered yet.")
    with right:
        numbers.heading(
            "What the time goes to",
            "Time of all incidents of a group, by phase. "
            + " ".join(f"{name.capitalize()}: {said}" for name, said in PHASE_MEANINGS.items()),
            query,
            key="phases",
        )
        plain_bars(
            figures.phases(groups),
            "Time of incidents by phase and group.",
            figures.phase_colours(groups),
        )
    _rates(groups, by, query)
    _attempts(groups, query)
    _validity(found, query)
    _slow(found["slow"], query)
    _tail(found["tail"], query)


def _stats(found: Mapping[str, Any], query: str) -> None:
    whole = found["all"]
    times = whole["recovered_ns"]
    with numbers.row("recovery") as row:
        row.number(
            "Recovered",
            percent(whole["rate"]),
            definition=f"{_RATE}. An incident that an outer layer ended counts as recovered.",
            query=query,
            delta=f"{count(whole['held'])} of {count(whole['settled'])}; {rows.interval(whole)}",
        )
        row.number(
            "Open",
            count(whole["outcomes"]["open"]),
            definition="Incidents that no attempt has put behind it yet.",
            query=query,
            delta=f"of {counted(found['incidents'], 'incident')}",
        )
        for title, name in (("Half take at most", "p50"), ("19 of 20 at most", "p95")):
            row.number(
                title,
                duration(times[name]),
                definition=f"{_TIME} {name}; one of the measured times, never a mean.",
                query=query,
                delta=f"longest {duration(times['max'])}"
                if name == "p95"
                else counted(times["count"], "recovery", "recoveries"),
            )
        per = whole["attempts_per_success"]
        row.number(
            "Attempts per success",
            UNKNOWN if per is None else f"{per:.2f}",
            definition="All attempts to recover, those of incidents that never recovered included, "
            "by recovered incidents.",
            query=query,
            delta=f"{count(whole['attempts_spent'])} by {count(times['count'])}",
        )


def _rates(groups: Mapping[str, Any], by: str, query: str) -> None:
    numbers.heading(
        "Rates",
        f"{_RATE}. A layer is judged by what it tried itself: an incident that an outer layer had "
        "to end counts against it. Times are p50, p95 and the longest.",
        query,
        key="rates",
    )
    body = [rows.rate_row(name, groups[name]) for name in figures.by_time(groups)]
    st.html(markup.table("Rates", rows.rate_columns(by.capitalize()), body))


def _attempts(groups: Mapping[str, Any], query: str) -> None:
    numbers.heading(
        "Attempts until training went on",
        "Recovered incidents by the number of attempts that they took.",
        query,
        key="attempts",
    )
    if any(one["attempts_needed"] for one in groups.values()):
        plot(
            figures.attempts(groups), "recovery-attempts", "Recoveries by the attempts they needed."
        )
    else:
        st.caption("No incident has recovered yet.")


def _validity(found: Mapping[str, Any], query: str) -> None:
    numbers.heading(
        "Are recoveries valid?",
        "A recovery is valid where steps that were done again agree with their first pass: their "
        "loss within 2 %, and the same samples consumed. Unknown: no step was done again, or "
        "neither loss nor samples were recorded.",
        query,
        key="validity",
    )
    valid = found["validity"]
    text = (
        f"{count(valid['yes'])} valid, {count(valid['no'])} not, {count(valid['unknown'])} unknown."
    )
    if valid["no"]:
        text += " Look at those that are not: training went on from another state or other data."
    st.caption(text)


def _slow(slow: Mapping[str, Any], query: str) -> None:
    numbers.heading(
        "What is different about the slow ones",
        "The slowest quarter of recoveries against the others. Each circumstance is compared by "
        "Fisher's exact test (1934); its chance is multiplied by the number of circumstances that "
        "are compared (Bonferroni). A difference is no cause.",
        query,
        key="slow",
    )
    if slow["threshold_ns"] is None:
        st.caption(
            f"{counted(slow['others'], 'recovery', 'recoveries')}: too few to compare. "
            "At least 12 are needed."
        )
        return
    st.caption(rows.slow_sentence(slow))
    body = [rows.slow_row(one, slow) for one in slow["differences"][:10]]
    if body:
        st.html(markup.table("Slow recoveries", rows.SLOW_COLUMNS, body, narrow=True))


def _tail(tail: list[dict[str, Any]], query: str) -> None:
    numbers.heading(
        "The slowest recoveries",
        f"{_TIME} The bar shows its phases.",
        query,
        key="tail",
    )
    if not tail:
        st.caption("No incident has recovered yet.")
        return
    body = [rows.tail_row(one, PHASE_COLOURS, reader.zone()) for one in tail[:_MOST_SLOW]]
    st.html(markup.table("Slowest recoveries", rows.TAIL_COLUMNS, body, wide=(3,)))
    st.html(markup.colours(PHASE_COLOURS))
