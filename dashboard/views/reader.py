"""What a page knows about the person who reads it, and how it says that something is missing."""

import time
from collections.abc import Callable
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from headway.dashboard import markup, source
from headway.dashboard.palette import LOOKS, Look
from headway.storage.client import CollectorError

NO_RUN = "No run has been seen yet."
START_ONE = (
    "Run `headway demo` for a small training with faults, or add a Recorder to a training program "
    "and start `headway agent` beside it."
)
LOOKS_AGAIN = "This page looks again by itself."


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


def missing(sentence: str, next_step: str) -> None:
    """Say what is missing and what to do about it."""
    st.html(markup.notice(sentence, next_step))


def wait(ready: Callable[[], bool], sentence: str, next_step: str) -> None:
    """Say what is missing, look again at every refresh, and draw the page once it is there."""
    asked = True  # the page has just asked; a collector that hangs is not asked twice in a row

    def look() -> None:
        nonlocal asked, sentence, next_step
        if not asked:
            try:
                if ready():
                    st.rerun()
            except CollectorError as error:
                sentence, next_step = error.sentence, error.next_step
        asked = False
        missing(sentence, next_step)
        st.caption(LOOKS_AGAIN)

    st.fragment(look, run_every=source.refresh_interval())()
