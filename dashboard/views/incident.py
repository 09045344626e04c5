"""The Incident page: what broke, whose it was, what it cost, and everything that tells so."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from headway.dashboard import incident_rows as rows
from headway.dashboard import incident_story as story
from headway.dashboard import markup, numbers, source
from headway.dashboard.views import notes, postmortem, reader
from headway.events import CAUSES
from headway.fleet.sides import side_of
from headway.incidents.vocabulary import OUTCOME_WORDS
from headway.storage.collector_errors import CollectorRefused
from headway.wording import (
    UNKNOWN,
    count,
    counted,
    duration,
    gpu_hours,
    plain,
    when,
)

_INCIDENT = "incident"
_MOST_SIMILAR = 6
_MOST_NOTICES = 1_000
_MOST_SHOWN = 50
_Told = Mapping[str, Any]


@reader.framed
def page() -> None:
    """Draw the incident that the address names; its address is its permanent link."""
    st.title("Incident")
    st.html(rows.STYLE + story.STYLE)
    identity = st.query_params.get(_INCIDENT)
    if identity is None:
        reader.missing(
            "The address names no incident.",
            "Open one from the Incidents page, or end the address with ?incident=ID.",
        )
        st.html(markup.facts([markup.link(markup.address("incidents"), "All incidents")]))
        return
    one = source.answer("incidents/{incident}", incident=identity)
    _act(one)
    reader.refreshed(lambda: _show(identity), live=one["state"] == "open")
    postmortem.downloads(identity)
    st.caption(
        f"In a terminal: `headway incident {identity}`. This page's address is its permanent link."
    )


def _show(identity: str) -> None:
    one = source.answer("incidents/{incident}", incident=identity)
    query = source.query("incidents/{incident}", incident=identity)
    st.html(markup.lead(rows.headline(one)))
    _facts(one)
    _stats(one, query)
    _spent(one, query)
    _story(one, query)
    _verdict(one, query)
    _tries(one, query)
    _similar(identity)
    _alerts(one)
    numbers.heading(
        "What people said",
        "Who took charge, corrections of the cause and notes; every word stays on record.",
        query,
        key="said",
    )
    notes.said(one["history"], one["labels"])


def _facts(one: _Told) -> None:
    zone = reader.zone()
    state = "Open" if one["state"] == "open" else "Closed"
    facts: list[markup.Cell] = [
        f"{state}. {OUTCOME_WORDS[one['outcome']]}",
        markup.Markup(html="Run " + markup.run_link(one["run"], one["run_name"]).html),
        f"Opened {when(one['opened'], zone)}",
    ]
    if one["suspect_node"] is not None:
        node = one["suspect_node"]
        link = markup.link(markup.address("hardware", node=node), node).html
        facts.append(markup.Markup(html=f"Suspected node {link}"))
    if one["acknowledged_by"] is not None:
        facts.append(f"{one['acknowledged_by']} took charge")
    if one["labels"]:
        facts.append(f"Labels: {', '.join(one['labels'])}")
    st.html(markup.facts(facts))


def _stats(one: _Told, query: str) -> None:
    steps, price = one["rollback_steps"], one["price"]
    with numbers.row("incident") as row:
        row.number(
            "Recovered after",
            rows.recovered(one),
            definition="From the fault until the first step after resuming; provisional while the "
            "incident is open.",
            query=query,
        )
        row.number(
            "Rolled back",
            UNKNOWN if steps is None else counted(steps, "step"),
            definition="Highest step before the fault minus the steps in the restored state, and "
            "the time those steps had taken.",
            query=query,
            delta=None if steps is None else duration(one["rollback_ns"]),
        )
        row.number(
            "GPU time lost",
            gpu_hours(one["lost_gpu_ns"]),
            definition="Time until training went on and that of the steps rolled back, times the "
            "GPUs held.",
            query=query,
            delta=f"{duration(one['lost_ns'])} of the run",
        )
        spent = rows.cost(one["lost_gpu_ns"], price)
        if spent is not None:
            row.number(
                "Cost",
                spent,
                definition="Lost GPU time times the price of a GPU-hour, "
                f"{price['per_gpu_hour']:g} {price['currency']}.",
                query=query,
            )
        row.number(
            "Attempts to recover",
            count(one["attempts"]),
            definition="Attempts that began after the fault, until one held.",
            query=query,
        )


def _spent(one: _Told, query: str) -> None:
    numbers.heading(
        "What the time went to",
        "The phases follow each other and do not overlap: detect, teardown, wait, start, load, "
        "recompute. Recomputing goes on after training has recovered, until it has caught up.",
        query,
        key="phases",
    )
    bar = rows.phase_bar(one["phases"])
    st.html(bar or '<p class="hw-age">No phase has taken any time yet.</p>')
    opened = one["open_phase"]
    if opened is not None:
        st.caption(f"Now: rank {opened['rank']} is in {plain(opened['phase'])}.")


def _story(one: _Told, query: str) -> None:
    zone = reader.zone()
    numbers.heading(
        "What happened",
        "All evidence, the attempts and what people said, in order of time from the opening. The "
        "first fault is the first observation that is no echo: an echo is what a dead peer looks "
        "like from outside. What decides is the record on which the verdict rests.",
        query,
        key="story",
    )
    st.html(story.timeline(one, zone))
    hidden = one["num_observations"] - len(one["observations"])
    if hidden:
        st.caption(f"And {counted(hidden, 'more observation')} that say the same of other ranks.")


def _verdict(one: _Told, query: str) -> None:
    numbers.heading(
        "Verdict",
        "The rule that chose the cause is told with it; a person's correction counts, and the "
        "rule's verdict stays beside it.",
        query,
        key="verdict",
    )
    by_rule = f"{rows.cause(one['original_cause'])} ({one['rule']})"
    told: list[tuple[str, str]] = []
    if one["corrected_by"] is None:
        told.append(("Cause", by_rule))
    else:
        reason = f": {one['reason']}" if one["reason"] else ""
        told.append(
            ("Cause", f"{rows.cause(one['cause'])}, corrected by {one['corrected_by']}{reason}")
        )
        told.append(("By the rule", by_rule))
    why = f" ({one['suspect_rule']})" if one["suspect_rule"] else ""
    told.append(("Suspect", rows.suspect(one) + why))
    if one["suspect_gpu"] is not None:
        repeats = one["gpu_repeats_in_all_runs"]
        week = "" if not repeats else f", blamed {counted(repeats, 'time')} in seven days"
        told.append(("GPU", f"{one['suspect_gpu']}{week}"))
    if one["signature"] is not None:
        told.append(("Signature", rows.readable(one["signature"])))
    valid = one["recovery_valid"]
    told.append(("Recovery valid", f"{valid['valid']} ({valid['reason']})"))
    told += [("Warning", warning) for warning in one["warnings"]]
    if one["suspected_false_alarm"]:
        told.append(("Suspicion", "false alarm: the timeout hit a phase that may take long"))
    if one["persistent"]:
        again = (f"{what} {count(times)} times" for what, times in one["persistent"].items())
        told.append(("Repeats in a row", ", ".join(again)))
    st.html(rows.pairs("Verdict", told))
    if one["cordon"]:
        _cordon(one)


def _cordon(one: _Told) -> None:
    """Show how to keep new work off the suspected node, at hand where machines may be to blame."""
    likely = side_of(one["cause"]) in ("machines", "undecided")
    title = f"Keep new work off {one['suspect_node']}"
    with st.expander(title if likely else f"{title}, if it is to blame after all", expanded=likely):
        for command in one["cordon"]:
            st.code(command, language="bash", wrap_lines=True)


def _tries(one: _Told, query: str) -> None:
    if not one["tries"]:
        return
    numbers.heading(
        "Attempts to recover",
        "Each attempt owns the time from the fault before it to its own; recomputing left out.",
        query,
        key="tries",
    )
    body = [
        (
            str(tried["number"]),
            plain(tried["layer"]),
            plain(tried["outcome"]),
            UNKNOWN if tried["resumed"] is None else count(tried["resumed"]),
            "held" if tried["cause"] is None else plain(tried["cause"]),
            duration(sum(ns for name, ns in tried["phases"].items() if name != "recompute")),
        )
        for tried in one["tries"]
    ]
    columns = ("#No.", "Started by", "Outcome", "#From step", "Broke by", "#Until then")
    st.html(markup.table("Attempts to recover", columns, body, narrow=True))


def _similar(identity: str) -> None:
    found = source.answer("incidents/{incident}/similar", incident=identity)
    numbers.heading(
        "Similar incidents",
        "Incidents of any run with the same signature, GPU or node: those that share most come "
        "first, then the newest.",
        source.query("incidents/{incident}/similar", incident=identity),
        key="similar",
    )
    shown = found["incidents"][:_MOST_SIMILAR]
    if not shown:
        st.caption("No other incident shares its signature, its GPU or its node.")
        return
    body = [rows.similar_row(each, reader.zone()) for each in shown]
    st.html(markup.table("Similar incidents", rows.SIMILAR_COLUMNS, body))
    if found["count"] > len(shown):
        st.caption(f"{count(len(shown))} of {counted(found['count'], 'similar incident')}.")


def _alerts(one: _Told) -> None:
    """Show whom the incident was told, where the collector told anybody."""
    try:
        newest = source.answer("alerts/deliveries", limit=_MOST_NOTICES)["deliveries"]
    except CollectorRefused:
        return  # alerting is off
    told = rows.alerts_of(one, newest)
    if not told:
        return
    numbers.heading(
        "Alerts",
        "Notices about the run or the suspected node that went out while the incident lasted, or "
        "within a quarter of an hour after it.",
        source.query("alerts/deliveries", limit=_MOST_NOTICES),
        key="alerts",
    )
    body = [rows.alert_row(each, reader.zone()) for each in told[:_MOST_SHOWN]]
    st.html(markup.table("Alerts", rows.ALERT_COLUMNS, body, wide=(2, 3)))
    if len(told) > len(body):
        st.caption(f"The first {count(len(body))} of {counted(len(told), 'notice')}.")


def _act(one: _Told) -> None:
    """Let the reader take charge, correct the cause and note something."""
    identity = one["incident"]
    if not notes.may_write():
        return
    with st.popover("Take charge, correct the cause, note"):
        _forms(one, identity, notes.author())


def _forms(one: _Told, identity: str, name: str) -> None:
    charge, correct, note = st.tabs(["Take charge", "Correct the cause", "Note"])
    with charge:
        taken = one["acknowledged_by"]
        st.caption("Nobody has taken charge." if taken is None else f"{taken} took charge.")
        if st.button("I take charge", key="ack"):
            notes.record(
                name, lambda: source.client().acknowledge(identity, name), "You took charge."
            )
    with correct, st.form("correct"):
        cause = st.selectbox(
            "Cause", CAUSES, index=CAUSES.index(one["cause"]), format_func=rows.cause
        )
        reason = st.text_input("Why", max_chars=1_000)
        if st.form_submit_button("Correct"):
            notes.record(
                name,
                lambda: source.client().correct(identity, cause, name, reason or None),
                "Corrected; the rule's verdict stays on record.",
            )
    with note:
        notes.form("incident", identity, list(one["labels"]), name)
