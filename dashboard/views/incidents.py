"""The Incidents page: what breaks, how often and at what cost, by signature or one by one."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from headway.dashboard import incident_groups as groups
from headway.dashboard import incident_rows as rows
from headway.dashboard import markup, numbers, source
from headway.dashboard.views import reader, window
from headway.dashboard.views.window import Window
from headway.events import CAUSES
from headway.wording import count, counted, duration, gpu_hours

_VIEWS: Mapping[str, str] = {"groups": "By signature", "list": "One by one"}
_STATES: Mapping[str, str] = {"all": "All", "open": "Open", "closed": "Closed"}
_MOST_GROUPS = 100
_AT_ONCE = 50
_CURSOR = "cursor"
_GROUP = "group"
_MEANT = "incidents-meant"


@reader.framed
def page() -> None:
    """Draw the page and keep it fresh; every choice is in the address."""
    st.title("Incidents")
    st.html(groups.STYLE)
    if not reader.any_run():
        return
    meant = window.chosen("30 days")
    view, filters = _chosen()
    asked = _asked(meant, filters)
    # What was older than an incident of other filters begins anew.
    if st.session_state.get(_MEANT, asked) != asked:
        st.query_params.pop(_CURSOR, None)
    st.session_state[_MEANT] = asked
    reader.refreshed(lambda: _show(meant, view, asked))


def _chosen() -> tuple[str, dict[str, str | None]]:
    with st.container(horizontal=True, gap="small", vertical_alignment="top", key="filters"):
        view = st.segmented_control(
            "Show",
            list(_VIEWS),
            default="groups",
            required=True,
            format_func=_VIEWS.__getitem__,
            key="view",
            bind="query-params",
        )
        state = st.segmented_control(
            "State",
            list(_STATES),
            default="all",
            required=True,
            format_func=_STATES.__getitem__,
            key="state",
            bind="query-params",
        )
        cause = st.selectbox(
            "Cause",
            [window.ANY, *CAUSES],
            format_func=lambda name: name if name == window.ANY else rows.cause(name),
            key="cause",
            bind="query-params",
            width=165,
        )
        nodes = [one["node"] for one in source.answer("nodes")["nodes"]]
        node = st.selectbox(
            "Suspected node",
            nodes,
            index=None,
            key="node",
            bind="query-params",
            accept_new_options=True,
            placeholder="any",
            width=165,
        )
    return view or "groups", {
        "state": None if state in (None, "all") else state,
        "cause": None if cause in (None, window.ANY) else cause,
        "node": node,
    }


def _asked(meant: Window, filters: Mapping[str, str | None]) -> dict[str, Any]:
    group = st.query_params.get(_GROUP)
    return {**meant.asked, **filters, "group": group}


def _show(meant: Window, view: str, asked: Mapping[str, Any]) -> None:
    found = source.answer("incident_groups", **asked)
    st.html(markup.lead(groups.summary(found["totals"], found["groups"], found["price"])))
    if asked["group"] is not None:
        _one_group(found, asked)
    _stats(found, asked)
    if not found["groups"]:
        reader.missing(
            "No incident is of this kind, in this time.",
            "Choose a longer time, or fewer conditions.",
        )
    elif view == "groups" and asked["group"] is None:
        _groups(meant, found, asked)
    else:
        _list(asked)


def _one_group(found: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    named = found["groups"][0] if found["groups"] else None
    name = "this signature" if named is None else groups.title(named)
    every = markup.link(_address(asked, group=None), "show all").html
    st.html(markup.facts((f"Only {name}", markup.Markup(html=every))))


def _stats(found: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    totals, price = found["totals"], found["price"]
    query = source.query("incident_groups", **asked)
    with numbers.row("incidents") as row:
        row.number(
            "Incidents",
            count(totals["incidents"]),
            definition="Incidents that opened in this time: from the first fault until an attempt "
            "holds. A fault before that joins the incident.",
            query=query,
            delta=counted(len(found["groups"]), "signature"),
        )
        row.number(
            "Open",
            count(totals["open"]),
            definition="Incidents that no attempt has put behind it yet.",
            query=source.query("incidents", **{**asked, "state": "open"}),
        )
        row.number(
            "GPU time lost",
            gpu_hours(totals["lost_gpu_ns"]),
            definition="Time from each fault until training went on and that of the steps rolled "
            "back, times the GPUs held.",
            query=query,
        )
        spent = rows.cost(totals["lost_gpu_ns"], price)
        if spent is not None:
            row.number(
                "Cost",
                spent,
                definition="Lost GPU time times the price of a GPU-hour, "
                f"{price['per_gpu_hour']:g} {price['currency']}.",
                query=query,
            )
        row.number(
            "Time lost",
            duration(totals["lost_ns"]),
            definition="The same without the GPUs: time of runs, summed over them.",
            query=query,
        )


def _groups(meant: Window, found: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    numbers.heading(
        "By signature",
        "Incidents of one cause whose fault says the same, numbers left aside. The bars count "
        "when they opened, from the first to the newest incident of the list.",
        source.query("incident_groups", **asked),
        key="groups",
    )
    shown, price, zone = found["groups"][:_MOST_GROUPS], found["price"], reader.zone()
    body = [
        groups.group_row(one, _address(asked, group=one["group"], view=_VIEWS["list"]), price, zone)
        for one in shown
    ]
    st.html(markup.table("Incidents by signature", groups.group_columns(price), body))
    if len(shown) < len(found["groups"]):
        st.caption(
            f"The newest {count(len(shown))} of {count(len(found['groups']))}; a shorter time or a "
            "condition shows the others."
        )


def _list(asked: Mapping[str, Any]) -> None:
    cursor = st.query_params.get(_CURSOR)
    wanted = {**asked, "limit": _AT_ONCE, "cursor": cursor}
    found = source.answer("incidents", **wanted)
    numbers.heading(
        "One by one",
        "The newest first. Recovered after: until the first step after resuming; provisional "
        "while the incident is open.",
        source.query("incidents", **wanted),
        key="list",
    )
    price = found["price"]
    body = [rows.row(one, price, reader.zone()) for one in found["incidents"]]
    st.html(markup.table("Incidents", rows.columns(price), body))
    total = found["totals"]["incidents"]
    part = f"{count(len(body))} of {counted(total, 'incident')}"
    st.caption(f"{part}, older ones." if cursor else f"The newest {part}.")
    with st.container(horizontal=True, gap="small"):
        if cursor and st.button("Newest", key="newest"):
            del st.query_params[_CURSOR]
            st.rerun()
        if found["next"] is not None and st.button("Older", key="older"):
            st.query_params[_CURSOR] = found["next"]
            st.rerun()


def _address(asked: Mapping[str, Any], **changed: str | None) -> str:
    """Return the address of this page with what is chosen now, but for some of it."""
    now = {
        name: value
        for name, value in st.query_params.items()
        if name not in (_CURSOR, _GROUP, *changed)
    }
    return markup.address("incidents", **now, **changed)
