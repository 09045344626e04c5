"""The search box: notes, incidents, changed settings and results by words, with what followed."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from headway.dashboard import markup, numbers, source
from headway.dashboard.markup import Cell
from headway.dashboard.views import reader
from headway.dashboard.views.run_panels.comparison import CONFIGURATIONS
from headway.storage.collector_errors import CollectorRefused
from headway.wording import counted, ratio_range, when

_WORDS = "find"
_SHOWN = 30
_PAGES: Mapping[str, str] = {"run": "run", "incident": "incident", "node": "hardware"}
"""The page of what something is about; its parameter is called as that is."""


def box() -> bool:
    """Draw the box, and what was found; return whether anything is looked for."""
    words = st.text_input(
        "Search",
        key=_WORDS,
        bind="query-params",
        placeholder="heartbeat timeout",
        max_chars=300,
        width=420,
        help="In notes, incidents with their evidence, changed settings and attached results. What "
        "stands in quotes must be there as it is.",
    )
    if not (words or "").strip():
        return False
    asked = {"words": words, "limit": _SHOWN}
    try:
        answer = source.answer("search", **asked)
    except CollectorRefused as error:
        reader.missing(error.sentence, error.next_step)
        return True
    numbers.heading(
        "Found",
        "The best answer first: rare words weigh more, and the newest comes first among equals. "
        "Below a change of settings stand the goodput before and after it, and the incidents "
        "until the next change.",
        source.query("search", **asked),
        key="found",
    )
    if not answer["found"]:
        reader.missing(
            f"Nothing of {counted(answer['searched'], 'thing')} says that.",
            "Try fewer words, or only the beginning of one.",
        )
        return True
    zone = reader.zone()
    rows = [
        (
            when(one["time"], zone),
            one["kind"],
            markup.two_lines(_link(one), one["line"]),
            _after(one),
        )
        for one in answer["found"]
    ]
    columns = ("When", "Kind", "What", "What followed")
    st.html(markup.table("Found", columns, rows, wide=(2, 3)))
    return True


def _link(one: Mapping[str, Any]) -> Cell:
    """Return the title with a link to what it is about."""
    about, subject = one["about"], one["subject"]
    if about == "configuration":
        address = markup.address("run", run=one["run"], view="Settings", attempt=one["attempt"])
    else:
        address = markup.address(_PAGES[about], **{about: subject})
    return markup.link(address, one["title"])


def _after(one: Mapping[str, Any]) -> Cell:
    """Return what came after a change of settings, with a link to the comparison."""
    followed = one["followed"]
    if followed is None:
        return ""
    before, after = (ratio_range(**followed[name]) for name in ("goodput_before", "goodput"))
    incidents = counted(followed["incidents"], "incident")
    compare = markup.address(
        "run",
        run=one["run"],
        view="Compare",
        compare=CONFIGURATIONS,
        one_attempt=one["attempt"],
        other_attempt=followed["attempt_before"],
    )
    return markup.two_lines(
        markup.link(compare, f"training goodput {before} before, {after} after"),
        f"{incidents} in {counted(followed['attempts'], 'attempt')}",
    )
