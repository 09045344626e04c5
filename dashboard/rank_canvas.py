"""The canvas on which ranks are drawn over time: what it is given, and how it is mounted.

A component that lies in this package, `canvas/`: no build step, and nothing is fetched for it.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from headway import metrics
from headway.course.rank_lanes import LEFT, LOSSES
from headway.dashboard import markup
from headway.wording import count, counted, plain

_MILLISECOND = 1_000_000
_HEIGHT = 420
_HIGHEST_ROW = 18
MOST_MARKS = 500
_LEFT_TITLE = "Left its attempt"
_LEFT_MEANING = "The rank had ended or left its attempt while others went on."
_HINT = "Point for details, click a marked incident to open it, drag over a stretch to enlarge it."

Answer = Mapping[str, Any]


def title_of(name: str) -> str:
    """Return what a category of the lanes is called."""
    return _LEFT_TITLE if name == LEFT else metrics.category(name).title


def picture(
    answer: Answer, incidents: Sequence[Mapping[str, Any]], zone: str, *, zoomed: bool
) -> dict[str, Any]:
    """Return what the canvas draws, from the lanes of a run and its incidents.

    The newest incidents are marked where there are very many. Times leave here in ms, because
    JavaScript has no whole numbers as large as UTC ns.
    """
    rows = answer["rows"]
    marks = _marks(answer, incidents)
    return {
        "begin": answer["start"] / _MILLISECOND,
        "end": answer["end"] / _MILLISECOND,
        "zone": zone,
        "columns": answer["columns"],
        "kinds": [_kind(name) for name in answer["names"]],
        "lanes": answer["lanes"],
        "rows": [{"lane": row["lane"], "text": text(row), "short": _short(row)} for row in rows],
        "marks": marks,
        "height": max(1, min(_HIGHEST_ROW, _HEIGHT // max(len(rows), 1))),
        "zoomed": zoomed,
        "hint": _HINT,
        "label": f"{counted(len(rows), 'row')} of ranks over time with "
        f"{counted(len(marks), 'incident')}. Arrow keys choose an incident, Enter opens it, plus "
        "and minus enlarge and reduce. The table below says the same.",
    }


def text(row: Mapping[str, Any]) -> str:
    """Return which ranks a row stands for: `Rank 3 on node-a`, `Ranks 0 to 7 on node-a`."""
    ranks = row["ranks"]
    if len(ranks) == 1:
        said = f"Rank {ranks[0]}"
    elif ranks[-1] - ranks[0] == len(ranks) - 1:
        said = f"Ranks {ranks[0]} to {ranks[-1]}"
    else:
        said = counted(len(ranks), "rank")
    if row["node"] is not None:
        said += f" on {row['node']}"
    return said if row["steps"] else f"{said}, which recorded no steps: as its group"


def _short(row: Mapping[str, Any]) -> str:
    ranks = row["ranks"]
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return str(row["node"] or f"{ranks[0]} to {ranks[-1]}")


def _kind(name: str) -> dict[str, Any]:
    if name == LEFT:
        return {"title": _LEFT_TITLE, "meaning": _LEFT_MEANING, "colour": None, "weight": 4}
    category = metrics.category(name)
    weight = 3 if name in LOSSES else 1 if name == "productive" else 2
    return {
        "title": category.title,
        "meaning": category.description,
        "colour": category.colour,
        "weight": weight,
    }


def _marks(answer: Answer, incidents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    begin, end = answer["start"], answer["end"]
    scale = answer["columns"] / max(end - begin, 1)
    found = []
    for one in incidents:
        until = end if one["recovered"] is None else one["recovered"]
        if one["opened"] > end or until < begin:
            continue
        suspects = "" if one["suspect_rank"] is None else f", rank {one['suspect_rank']} suspected"
        found.append(
            {
                "address": markup.address("incident", incident=one["incident"]),
                "text": f"Incident {count(one['number'])}: {plain(one['cause'])}{suspects}.",
                "from": max(one["opened"] - begin, 0) * scale,
                "to": min(until - begin, end - begin) * scale,
                "row": _row(answer["rows"], one),
            }
        )
    return found[-MOST_MARKS:]


def _row(rows: Sequence[Mapping[str, Any]], incident: Mapping[str, Any]) -> int | None:
    """Return the row of the rank that an incident accuses."""
    rank = incident["suspect_rank"]
    return next((number for number, row in enumerate(rows) if rank in row["ranks"]), None)


def draw(
    data: Mapping[str, Any],
    *,
    key: str,
    on_stretch: Callable[[], None],
) -> None:
    """Draw the canvas; the session's state under `key` holds the stretch that was chosen."""
    _component()(key=key, data=dict(data), on_stretch_change=on_stretch)


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    folder = Path(__file__).with_name("canvas")
    html, css, js = (
        (folder / f"ranks.{ending}").read_text(encoding="utf-8") for ending in ("html", "css", "js")
    )
    return st.components.v2.component("headway_ranks", html=html, css=css, js=js)
