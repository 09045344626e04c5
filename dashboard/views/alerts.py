"""The Alerts page: what fires and why, whom it reached, who keeps it quiet, who would be told."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import streamlit as st

from headway.dashboard import markup, numbers, source
from headway.dashboard.views import notes, reader
from headway.storage.alert_client import AlertClient
from headway.storage.collector_errors import CollectorError, CollectorRefused
from headway.wording import count, counted, duration, plain, when

_SECOND = 10**9
_MOST_NOTICES = 100
_UNDELIVERED = ("waiting", "refused", "given up")
_SEVERITIES = ("page", "ticket", "info")
_GRAVEST = (*_SEVERITIES, "none")
_LENGTHS = {"1 hour": 1, "4 hours": 4, "1 day": 24, "1 week": 168}
_Told = Mapping[str, Any]


@reader.framed
def page() -> None:
    """Draw the page and keep what fires fresh."""
    st.title("Alerts")
    try:
        source.answer("alerts")
    except CollectorRefused as error:
        reader.missing(error.sentence, error.next_step)
        return
    reader.refreshed(_show)
    _route_preview()
    if notes.may_write():
        _orders()
    _rules()


def _show() -> None:
    state = source.answer("alerts")
    silences = source.answer("alerts/silences")["silences"]
    deliveries = source.answer("alerts/deliveries", limit=_MOST_NOTICES)["deliveries"]
    loud = [one for one in state["alerts"] if one["state"] == "firing" and one["hidden"] is None]
    pending = [one for one in state["alerts"] if one["state"] == "pending"]
    hidden = [one for one in state["alerts"] if one["hidden"] is not None]
    _stats(loud, pending, hidden, deliveries)
    handed = state["alertmanager"]
    if handed is not None:
        st.caption(handed["failure"] or f"Handed over to Alertmanager at {handed['address']}.")
    for one in state["undelivered"]:
        if one["tries"]:
            st.html(markup.notice(one["words"], "It is tried again every five minutes."))
    _firing(loud, state["groups"])
    _waiting(pending)
    _quiet(hidden, silences)
    _log(deliveries)


def _stats(
    loud: Sequence[_Told],
    pending: Sequence[_Told],
    hidden: Sequence[_Told],
    deliveries: Sequence[_Told],
) -> None:
    asked = source.query("alerts")
    stuck = [one for one in deliveries if one["state"] in _UNDELIVERED]
    with numbers.row("alerts") as row:
        pages = sum(one["labels"]["severity"] == "page" for one in loud)
        row.number(
            "Firing",
            count(len(loud)),
            delta=counted(pages, "page"),
            definition="Alerts whose condition has held for the rule's time and of which people "
            "are told.",
            query=asked,
        )
        row.number(
            "Pending",
            count(len(pending)),
            delta="fire if it stays",
            definition="Alerts whose condition holds, though not yet for the rule's time.",
            query=asked,
        )
        row.number(
            "Hidden",
            count(len(hidden)),
            delta="nobody is told",
            definition="Alerts that fire and are silenced, muted by maintenance, or of which "
            "another alert about the same run says more.",
            query=asked,
        )
        row.number(
            "Not delivered",
            count(len(stuck)),
            delta=f"of the newest {count(len(deliveries))} notices",
            definition="Notices that wait for their receiver, that it refuses, or that were "
            "given up.",
            query=source.query("alerts/deliveries", limit=_MOST_NOTICES),
        )


def _firing(loud: Sequence[_Told], groups: Sequence[_Told]) -> None:
    numbers.heading(
        "Firing",
        "What fires, with its condition and value, the suspect and the stake of the open incident, "
        "and who was told. One notice per run, however many of its alerts fire.",
        source.query("alerts"),
        key="firing",
    )
    if not loud:
        st.caption("Nothing fires.")
        return
    of: dict[str, list[_Told]] = {}
    for group in groups:
        of.setdefault(group["subject"], []).append(group)
    columns = ("Severity", "What", "Suspect and stake", "Because", "Since", "Told")
    ordered = sorted(loud, key=lambda one: _GRAVEST.index(one["labels"]["severity"]))
    body = [_firing_row(one, of.get(one["labels"]["subject"], ())) for one in ordered]
    st.html(markup.table("Firing", columns, body, wide=(1, 2, 3)))


def told(groups: Sequence[_Told]) -> str:
    """Return who was told of a subject, and who of them took it."""
    words = []
    for group in groups:
        taker = group["acknowledged_by"]
        if group["told"] is not None:
            words.append(group["receiver"] + ("" if taker is None else f" ({taker} has it)"))
    return ", ".join(words) or "not yet"


def _firing_row(one: _Told, groups: Sequence[_Told]) -> Sequence[markup.Cell]:
    annotations = one["annotations"]
    stake = ", ".join(annotations[name] for name in ("suspect", "stake") if annotations.get(name))
    return (
        plain(one["labels"]["severity"]),
        markup.two_lines(_about(one), f"{one['rule']}: {annotations['summary']}"),
        stake or ("no open incident" if one["labels"].get("run") else ""),
        _because(one),
        when(round(one["since"] * _SECOND), reader.zone()),
        told(groups),
    )


def _because(one: _Told) -> str:
    """Return the condition with the value in its unit: a share is written in percent."""
    condition, value = one["condition"], one["value"]
    now = f"{100 * value:.4g}%" if condition.endswith("%") else f"{value:.4g}"
    return f"{condition}, now {now}"


def _about(one: _Told) -> markup.Cell:
    labels = one["labels"]
    if labels.get("run"):
        return markup.run_link(labels["run"], labels["run"])
    if labels.get("node"):
        return markup.link(markup.address("hardware", node=labels["node"]), labels["node"])
    return "Headway itself"


def _waiting(pending: Sequence[_Told]) -> None:
    if not pending:
        return
    numbers.heading(
        "Pending",
        "Conditions that hold, though not for the rule's time yet.",
        source.query("alerts"),
        key="pending",
    )
    body = [
        (
            one["rule"],
            one["labels"]["subject"],
            _because(one),
            when(round(one["fires_at"] * _SECOND), reader.zone()),
        )
        for one in pending
    ]
    columns = ("Rule", "About", "Because", "Fires at")
    st.html(markup.table("Pending", columns, body, wide=(2,)))


def _quiet(hidden: Sequence[_Told], silences: Sequence[_Told]) -> None:
    if hidden:
        numbers.heading(
            "Hidden",
            "Alerts that fire and of which nobody is told, with the reason.",
            source.query("alerts"),
            key="hidden",
        )
        body = [(one["rule"], one["labels"]["subject"], one["hidden"]) for one in hidden]
        st.html(markup.table("Hidden", ("Rule", "About", "Why nobody is told"), body, wide=(2,)))
    active = [one for one in silences if one["state"] != "over"]
    if active:
        numbers.heading(
            "Silences",
            "What people keep quiet, until when and why.",
            source.query("alerts/silences"),
            key="silences",
        )
        rows = [
            (
                str(one["silence"]),
                " ".join(one["matchers"]),
                one["owner"],
                one["reason"],
                when(round(one["ends"] * _SECOND), reader.zone()),
            )
            for one in active
        ]
        columns = ("#No.", "Alerts", "Owner", "Reason", "Until")
        st.html(markup.table("Silences", columns, rows, wide=(1, 3)))


def _log(deliveries: Sequence[_Told]) -> None:
    numbers.heading(
        "Delivery log",
        "The newest notices with what became of each. A notice is sent until its receiver took "
        "it; one that refuses five times is given up.",
        source.query("alerts/deliveries", limit=_MOST_NOTICES),
        key="deliveries",
    )
    if not deliveries:
        st.caption("Nobody was told of anything yet.")
        return
    body = [
        (
            when(round(one["created"] * _SECOND), reader.zone()),
            one["receiver"],
            f"{one['headline']} ({one['why']})",
            one["state"],
            str(one["tries"]),
            one["answer"] or "",
        )
        for one in deliveries
    ]
    columns = ("Time", "Receiver", "What", "State", "#Tries", "Answer")
    st.html(markup.table("Delivery log", columns, body, wide=(2, 5)))


def _route_preview() -> None:
    numbers.heading(
        "Who would be told",
        "The receivers that an alert with these labels reaches by the site's alerts file.",
        "POST /api/v1/alerts/route",
        key="route",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        severity = st.selectbox(
            "Severity", _SEVERITIES, key="severity", bind="query-params", width=110
        )
        team = st.text_input("Team", key="alert_team", bind="query-params", width=110)
        cluster = st.text_input("Cluster", key="alert_cluster", bind="query-params", width=110)
    labels = {"severity": severity, "team": team or "", "cluster": cluster or ""}
    given = {name: value for name, value in labels.items() if value}
    for way in AlertClient(source.client()).route(given):
        words = f"**{way['receiver']}** ({way['kind']}), because {way['because']}"
        if way["escalate_to"] is not None:
            after = duration(way["escalate_after_s"] * _SECOND)
            words += f"; and **{way['escalate_to']}** after {after} without acknowledgement"
        st.markdown(words + (". Muted now by maintenance." if way["muted"] else "."))


def _orders() -> None:
    """Let the reader take an alert, silence some, or send a test."""
    name = notes.author()
    client = AlertClient(source.client())
    take, silence, end, test = st.tabs(["Take an alert", "Silence", "End a silence", "Test"])
    groups = {
        f"{group['subject']} ({group['receiver']})": group["key"]
        for group in source.answer("alerts")["groups"]
        if group["acknowledged_by"] is None
    }
    with take:
        if not groups:
            st.caption("Nothing fires that nobody has taken.")
        else:
            chosen = st.selectbox("Alert", list(groups))
            if st.button("I have it", key="take"):
                key = groups[chosen]
                notes.record(name, lambda: client.acknowledge(key, name), "You have it.")
    with silence, st.form("silence", clear_on_submit=True):
        matchers = st.text_input("Alerts", placeholder='run="llama-8b" severity="ticket"')
        length = st.selectbox("For", list(_LENGTHS))
        reason = st.text_input("Reason", max_chars=500)
        if st.form_submit_button("Silence"):
            hours = timedelta(hours=_LENGTHS[length])
            until = reader.now() + round(hours.total_seconds()) * _SECOND
            notes.record(
                name,
                lambda: client.silence(_matchers(matchers), name, reason, until),
                "They are quiet.",
            )
    with end:
        active = [
            one["silence"]
            for one in source.answer("alerts/silences")["silences"]
            if one["state"] != "over"
        ]
        if not active:
            st.caption("There is no silence.")
        else:
            number = st.selectbox("Silence", active)
            if st.button("End it now", key="end"):
                notes.record(name, lambda: client.end_silence(number, name), "It is over.")
    with test:
        st.caption("Sends a notice that says that it is a test to whoever is named above.")
        if st.button("Send a test", key="test"):
            labels = {"severity": st.session_state.get("severity", "page")}
            labels |= {"team": st.session_state.get("alert_team") or ""}
            try:
                sent = client.test({key: value for key, value in labels.items() if value})
            except CollectorError as error:
                reader.missing(error.sentence, error.next_step)
            else:
                st.success(f"Sent to {', '.join(one['receiver'] for one in sent)}.")
                source.doubt()


def _matchers(words: str) -> list[str]:
    """Return matchers that are written with blanks between, as `run="a b" team=c` is two."""
    try:
        return shlex.split(words, posix=False)
    except ValueError:  # a quotation mark without its other half: the collector says so
        return [words]


def _rules() -> None:
    numbers.heading(
        "Rules",
        "Every rule as the site has it; each compares one published metric.",
        source.query("alerts/rules"),
        key="rules",
    )
    body = [
        (
            one["rule"],
            one["condition"],
            duration(one["hold_s"] * _SECOND) if one["hold_s"] else "one look",
            plain(one["severity"]),
            one["meaning"],
        )
        for one in source.answer("alerts/rules")["rules"]
    ]
    columns = ("Rule", "Fires when", "For", "Severity", "What it means")
    with st.expander(f"All {counted(len(body), 'rule')}"):
        st.html(markup.table("Rules", columns, body, wide=(1, 4)))
