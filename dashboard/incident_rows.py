"""Rows of the tables about incidents, and pieces of the page of one. Pure functions."""

import re
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from html import escape
from typing import Any

from headway.dashboard import markup
from headway.dashboard.markup import Cell, Markup
from headway.incidents.model import PHASES
from headway.incidents.vocabulary import PHASE_COLOURS, PHASE_MEANINGS
from headway.wording import (
    UNKNOWN,
    counted,
    duration,
    gpu_hours,
    money,
    percent,
    plain,
    when,
)

Told = Mapping[str, Any]
Price = Mapping[str, Any] | None
_GPU_NS_PER_HOUR = 3_600 * 10**9
_LONGEST_NAME = 40
_DECLARED = re.compile("[a-z]+(_[a-z]+)+")
_LATE = 900 * 10**9
"""Time in ns after the closing within which a notice is still about an incident."""


def cost(lost_gpu_ns: int, price: Price) -> str | None:
    """Return what lost GPU time costs; None without a price."""
    if price is None:
        return None
    return money(lost_gpu_ns / _GPU_NS_PER_HOUR * price["per_gpu_hour"], price["currency"])


def cause(name: str) -> str:
    """Return a cause as a heading: `GPU fault`, `Host OOM`."""
    words = plain(name).replace("gpu", "GPU").replace("oom", "OOM")
    return words[:1].upper() + words[1:]


def readable(text: str) -> str:
    """Return evidence or a signature without a program's spelling of it.

    `lost_node: the node left` reads `lost node: ...`, `builtins.OSError` reads `OSError`.
    """
    kind, colon, rest = text.partition(": ")
    if colon and _DECLARED.fullmatch(kind):
        text = f"{plain(kind)}: {rest}"
    return text.replace("builtins.", "")


def headline(one: Told) -> Markup:
    """Return what broke, who is suspected and what it cost, as the sentence that opens a page."""
    text = str(one["headline"]).removesuffix(".")
    lost = gpu_hours(one["lost_gpu_ns"])
    marked: dict[str, Markup | None] = {cause(one["cause"]): None}
    if one["lost_gpu_ns"]:
        spent = cost(one["lost_gpu_ns"], one["price"])
        text += f"; {lost} lost" + ("" if spent is None else f" ({spent})")
        marked[f"{lost} lost"] = None
    node = one["suspect_node"]
    if node is not None:
        marked[node] = markup.link(markup.address("hardware", node=node), node)
    return markup.spoken(f"{text}.", marked)


def columns(price: Price) -> Sequence[str]:
    """Return the headings of the list of incidents."""
    money_too = () if price is None else ("#Cost",)
    return (
        "Opened",
        "Cause",
        "State",
        "Run",
        "Suspect",
        "#Recovered after",
        "#Rolled back",
        "#GPU time lost",
        *money_too,
        "Taken charge of by",
    )


def row(one: Told, price: Price, zone: tzinfo) -> Sequence[Cell]:
    """Return one incident of the list."""
    steps, spent = one["rollback_steps"], cost(one["lost_gpu_ns"], price)
    return (
        link(one, zone),
        cause(one["cause"]),
        one["state"],
        markup.run_link(one["run"], short(one["run_name"])),
        suspect(one),
        recovered(one),
        UNKNOWN if steps is None else counted(steps, "step"),
        gpu_hours(one["lost_gpu_ns"]),
        *(() if spent is None else (spent,)),
        one["acknowledged_by"] or "",
    )


def link(one: Told, zone: tzinfo) -> Markup:
    """Return the link to an incident, named by the time at which it opened."""
    return markup.link(
        markup.address("incident", incident=one["incident"]), when(one["opened"], zone)
    )


def short(name: str) -> str:
    """Return a name as a table has room for it; its link has the whole."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}\u2026"


def suspect(one: Told) -> str:
    """Return whom the evidence accuses."""
    rank, node = one["suspect_rank"], one["suspect_node"]
    if rank is None:
        return str(node or "nobody")
    return f"rank {rank}" + (f" on {node}" if node else "")


def recovered(one: Told) -> str:
    """Return after how long training went on."""
    if one["recovered"] is not None:
        return duration(one["recovered"] - one["opened"])
    return "never" if one["outcome"] == "not_recovered" else "not yet"


def phase_bar(phases: Mapping[str, int]) -> str:
    """Return what an incident spent its time on: one bar, and below it each phase with its time."""
    spent = [(name, phases.get(name, 0)) for name in PHASES if phases.get(name, 0)]
    whole = sum(ns for _, ns in spent)
    if not whole:
        return ""
    words = ", ".join(f"{name} {duration(ns)}" for name, ns in spent)
    bar = "".join(
        f'<span style="width:{100 * ns / whole:.3f}%;background:{PHASE_COLOURS[name]}" '
        f'title="{escape(f"{name} {duration(ns)}: {PHASE_MEANINGS[name]}")}"></span>'
        for name, ns in spent
    )
    keys = "".join(
        f'<span title="{escape(PHASE_MEANINGS[name])}"><span class="hw-key" '
        f'style="background:{PHASE_COLOURS[name]}"></span>{escape(name)} '
        f"<b>{escape(duration(ns))}</b> {escape(percent(ns / whole))}</span>"
        for name, ns in spent
    )
    return (
        f'<div class="hw-bar hw-tall" role="img" aria-label="{escape(words)}">{bar}</div>'
        f'<div class="hw-legend">{keys}</div>'
    )


ALERT_COLUMNS = ("When", "To", "What", "Why", "Came of it")


def alerts_of(one: Told, deliveries: Sequence[Told]) -> list[Told]:
    """Return the notices about an incident's run or suspected node that went out while it lasted.

    A notice names no incident: what counts is its subject, and that it was made from the opening
    until shortly after the closing.
    """
    subjects = {f"run {one['run']}", f"run {one['run_name']}"}
    if one["suspect_node"] is not None:
        subjects.add(f"node {one['suspect_node']}")
    first = one["opened"]
    last = one["as_of"] if one["closed"] is None else one["closed"]
    return sorted(
        (
            each
            for each in deliveries
            if each["subject"] in subjects and first <= _ns(each) <= last + _LATE
        ),
        key=_ns,
    )


def alert_row(delivery: Told, zone: tzinfo) -> Sequence[Cell]:
    """Return one notice with what became of it."""
    return (
        when(_ns(delivery), zone),
        delivery["receiver"],
        delivery["headline"],
        delivery["why"],
        delivery["state"] + (f": {delivery['answer']}" if delivery["answer"] else ""),
    )


def _ns(delivery: Told) -> int:
    return int(delivery["created"] * 10**9)


def pairs(label: str, told: Sequence[tuple[str, str]]) -> str:
    """Return facts with their names, one a line."""
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
        for name, text in told
    )
    return (
        f'<table class="hw-table hw-narrow hw-pairs" aria-label="{escape(label)}">'
        f"<tbody>{lines}</tbody></table>"
    )


def similar_row(one: Told, zone: tzinfo) -> Sequence[Cell]:
    """Return an incident that is like another, and what both have in common."""
    return (
        link(one, zone),
        ", ".join(one["shares"]),
        cause(one["cause"]),
        markup.run_link(one["run"], short(one["run_name"])),
        suspect(one),
        recovered(one),
        gpu_hours(one["lost_gpu_ns"]),
    )


SIMILAR_COLUMNS = (
    "Opened",
    "In common",
    "Cause",
    "Run",
    "Suspect",
    "#Recovered after",
    "#GPU time lost",
)

STYLE = """<style>
.hw-tall { height: 1.6rem; }
.hw-table.hw-pairs td { white-space: normal; overflow-wrap: anywhere; }
.hw-table.hw-pairs th { white-space: nowrap; }
@media (max-width: 640px) { .hw-table.hw-pairs th { white-space: normal; } }
</style>"""
"""Looks of these pieces; a page that shows them puts it first."""
