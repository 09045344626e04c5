"""What people said about something, and the form with which to say more.

Every word goes to the collector's API under the reader's name and stays on record there.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st

from headway.dashboard import markup, numbers, sign_in, source
from headway.dashboard.views import reader
from headway.storage.collector_errors import CollectorError
from headway.wording import remark, when

_AUTHOR = "author"
_TITLES = {"configuration": "Notes on these settings"}
ADMIN = "admin"
NO_SCOPE = (
    "This dashboard may only read: its token lacks the scope admin, so nothing can be recorded "
    "here. `headway note` and `headway incident ID` record with a token of yours."
)


def show(about: str, subject: str) -> None:
    """Show the notes and labels of a run, a node or an attempt's configuration, and the form."""
    found = source.answer("notes", about=about, subject=subject, limit=100)
    numbers.heading(
        _TITLES.get(about, "Notes"),
        "What people wrote about it. Nothing is changed or taken back; a label can be removed.",
        source.query("notes", about=about, subject=subject),
        key=f"notes-{about}",
    )
    said(found["notes"][::-1], found["labels"])
    if may_write():
        form(about, subject, found["labels"], author())


def said(remarks: list[dict[str, Any]], labels: list[str]) -> None:
    """Show what people said, the oldest first, and the labels that are left."""
    if labels:
        st.html(markup.facts([f"Labels: {', '.join(labels)}"]))
    if not remarks:
        st.caption("Nobody has said anything yet.")
        return
    zone = reader.zone()
    body = [(when(one["time"], zone), one["author"] or "", remark(one)) for one in remarks]
    st.html(markup.table("What people said", ("When", "Who", "What"), body, wide=(2,)))


def may_write() -> bool:
    """Return whether the collector takes what is said here; else say why not."""
    if ADMIN in source.answer("access")["scopes"]:
        return True
    st.caption(NO_SCOPE)
    return False


def author() -> str:
    """Return the reader's name: the one they signed in with, else the one they give."""
    known = sign_in.person()
    if known is not None:
        st.caption(f"Recorded as {known}.")
        return known
    given = st.text_input(
        "Your name",
        key=_AUTHOR,
        persist_state="session",
        max_chars=100,
        placeholder="stays on record with what you say",
        width=320,
    )
    return (given or "").strip()


def form(about: str, subject: str, labels: list[str], name: str) -> None:
    """Let the reader note something under a name, and give or take labels."""
    with st.form(f"note-{about}-{subject}", clear_on_submit=True):
        text = st.text_area("Note", max_chars=10_000, height=90)
        chosen = st.multiselect(
            "Labels",
            labels,
            default=labels,
            accept_new_options=True,
            placeholder="none; type one",
            key=f"labels-{about}-{subject}-{'-'.join(labels)}",
        )
        sent = st.form_submit_button("Save the note")
    if not sent:
        return
    given = [label for label in chosen if label not in labels]
    taken = [label for label in labels if label not in chosen]
    if not (text or "").strip() and not given and not taken:
        st.caption("The note says nothing: write some words, or change a label.")
        return
    record(
        name,
        lambda: source.client().note(
            about, subject, name, (text or "").strip() or None, labels=given, labels_removed=taken
        ),
        "Noted.",
    )


def record(name: str, act: Callable[[], object], done: str) -> None:
    """Record something under a name, say so, and draw the page with it."""
    if not name:
        st.caption("Say who you are first: it stays on record.")
        return
    try:
        act()
    except CollectorError as error:
        reader.missing(error.sentence, error.next_step)
        return
    source.doubt()
    st.toast(done)
    st.rerun()
