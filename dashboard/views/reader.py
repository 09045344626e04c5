"""What a page knows about the person who reads it, and how it says that something is missing."""

import functools
import time
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from headway.dashboard import answers, markup, source
from headway.dashboard.palette import LOOKS, Look
from headway.storage.collector_errors import (
    CollectorError,
    UnknownIncident,
    UnknownNode,
    UnknownRun,
)
from headway.wording import duration, when

NO_RUN = "No run has been seen yet."
START_ONE = (
    "Run `headway demo` for a small training with faults, or add a Recorder to a training program "
    "and start `headway agent` beside it."
)
LOOKS_AGAIN = "This page looks again by itself."
ASKS = "Asking the collector ..."

_SECOND = 1_000_000_000
_ELSEWHERE: Mapping[type[CollectorError], str] = {
    UnknownRun: "Open the Fleet page for the runs that are known; the agent may still hold it.",
    UnknownIncident: "Open the Incidents page for those that are known.",
    UnknownNode: "Open the Hardware page for the nodes that are known.",
}
"""What to do on these pages where the collector's words are for a terminal."""


def zone() -> tzinfo:
    """Return the reader's time zone, UTC where the browser does not say."""
    name = st.context.timezone
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def look() -> Look:
    """Return the colours that the reader's browser shows."""
    return LOOKS[st.context.theme.type or "light"]


def now() -> int:
    """Return the wall-clock time in nanoseconds."""
    return time.time_ns()


def asked(found: answers.Reading) -> int:
    """Return when the oldest answer of a reading was confirmed, UTC ns."""
    since = 0.0 if found.asked is None else time.monotonic() - found.asked
    return now() - round(since * _SECOND)


def missing(sentence: str, next_step: str) -> None:
    """Say what is missing and what to do about it."""
    st.html(markup.notice(sentence, next_step))


def any_run() -> bool:
    """Return whether a run is known; where none is, say how to start one and look again."""

    def known() -> bool:
        return bool(source.answer("runs", limit=1)["runs"])

    if known():
        return True
    wait(known, NO_RUN, START_ONE)
    return False


def framed(page: Callable[[], None]) -> Callable[[], None]:
    """Make a page say in words why it has no answer, and look again by itself.

    When it is opened it shows what is known at once, and what is new at its next look.
    """

    @functools.wraps(page)
    def drawn() -> None:
        try:
            with answers.hasty():
                page()
        except CollectorError as error:
            _until_answered(error)

    return drawn


def refreshed(draw: Callable[[], None], *, live: bool = True) -> None:
    """Draw a part of a page under the age of its data, again and again while it is live.

    Until the first answer it says that it waits; without one it says so in words; with an old one
    it shows that and says why.
    """
    begun = False

    def drawn() -> None:
        nonlocal begun
        # Only an element that is new may be empty for a while: the page would jump at each look.
        above = st.container() if begun else st.empty()
        if not begun:
            above.html(markup.waiting(ASKS))
        # What does not look again has to be right at once.
        with answers.reading() as found, answers.hasty(live and not begun):
            try:
                draw()
            except CollectorError as error:
                _failed(error)
            except Exception:  # Streamlit says it, and nothing is to wait beside that
                if not begun:
                    above.empty()
                raise
        with above if begun else above.container():
            _age(found, live)
        begun = True

    st.fragment(drawn, run_every=source.refresh_interval() if live else None)()


def _age(found: answers.Reading, live: bool) -> None:
    """Show how old the data of a page is, and why where it should be younger."""
    if found.trouble is not None:
        missing(found.trouble.sentence, found.trouble.next_step)
    if found.asked is None:
        return
    checked = _whole(round((time.monotonic() - found.asked) * _SECOND))
    if found.as_of is None:
        text = f"Data of {duration(checked)} ago"
    else:
        age = duration(_whole(now() - found.as_of))
        text = f"Data as of {when(found.as_of, zone())}, {age} old"
    if found.trouble is not None:
        text += f". The collector last answered {duration(checked)} ago."
    elif live:
        text += f". Looks again every {source.refresh_interval():g} s."
    st.html(markup.age(text, stale=found.trouble is not None))


def _whole(ns: int) -> int:
    return max(0, ns) // _SECOND * _SECOND


def _failed(error: CollectorError) -> None:
    """Say why there is nothing to show, and what to do about it here."""
    missing(error.sentence, _ELSEWHERE.get(type(error), error.next_step))
    st.caption(LOOKS_AGAIN)


def _until_answered(error: CollectorError) -> None:
    """Say what is missing, and draw the whole page again at every refresh."""
    shown = False

    def look() -> None:
        nonlocal shown
        if shown:
            st.rerun()
        shown = True
        _failed(error)

    st.fragment(look, run_every=source.refresh_interval())()


def wait(ready: Callable[[], bool], sentence: str, next_step: str) -> None:
    """Say what is missing, look again at every refresh, and draw the page once it is there."""

    def look() -> None:
        if ready():
            st.rerun()
        missing(sentence, next_step)
        st.caption(LOOKS_AGAIN)

    refreshed(look)
