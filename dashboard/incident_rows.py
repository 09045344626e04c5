"""Rows of the tables about incidents and their groups, and one incident's story. Pure functions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from html import escape
from typing import Any

from headway.dashboard import markup
from headway.dashboard.markup import Cell, Markup
from headway.incidents.model import PHASES
from headway.incidents.vocabulary import PHASE_COLOURS, PHASE_MEANINGS
from headway.wording import (
    UNKNOWN,
    count,
    counted,
    duration,
    gpu_hours,
    money,
    percent,
    plain,
    remark,
    when,
)

Told = Mapping[str, Any]
Price = Mapping[str, Any] | None
_GPU_NS_PER_HOUR = 3_600 * 10**9
_LONGEST_NAME = 40
_DECLARED = re.compile("[a-z]+(_[a-z]+)+")
_LATE = 900 * 10**9
"""Time in ns after the closing within which a notice is still about an incident."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One line of an incident's story; the time is UTC ns."""

    time: int
    words: str
    where: str = ""
    kind: str = "evidence"
    first_fault: bool = False
    decides: bool = False


def cost(lost_gpu_ns: int, price: Price) -> str | None:
    """Return what lost GPU time costs; None without a price."""
    if price is None:
        return None
    return money(lost_gpu_ns / _GPU_NS_PER_HOUR * price["per_gpu_hour"], price["currency"])


def cause(name: str) -> str:
    """Return a cause as a heading: `GPU fault`, `Host OOM`."""
    words = plain(name).replace("gpu", "GPU").replace("oom", "OOM")
    return words[:1].upper() + words[1:]


def summary(totals: Mapping[str, int], groups: Sequence[Told], price: Price) -> str:
    """Return the sentence that opens the list: how many, what they cost, and which cost most."""
    if not totals["incidents"]:
        return "No incident opened."
    spent = cost(totals["lost_gpu_ns"], price)
    opened = f"; {count(totals['open'])} still open" if totals["open"] else "; none is open"
    text = (
        f"{counted(totals['incidents'], 'incident')} cost {gpu_hours(totals['lost_gpu_ns'])}"
        f"{'' if spent is None else f' ({spent})'}{opened}."
    )
    worst = max(groups, key=lambda one: one["lost_gpu_ns"], default=None)
    if worst is None or not worst["lost_gpu_ns"] or len(groups) == 1:
        return text
    share = percent(worst["lost_gpu_ns"] / totals["lost_gpu_ns"])
    times = "once" if worst["incidents"] == 1 else f"{count(worst['incidents'])} times"
    return f"{text} The costliest kind took {share} of that: {title(worst)} ({times})."


def title(group: Told) -> str:
    """Return what the incidents of a group are called: their cause with their signature."""
    name, signature = cause(group["cause"]), group["signature"]
    return name if signature is None else f"{name}: {readable(signature)}"


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


def group_columns(price: Price) -> Sequence[str]:
    """Return the headings of the table of groups."""
    money_too = () if price is None else ("#Cost",)
    return (
        "What",
        "#Incidents",
        "#Open",
        "#Runs",
        "When",
        "#GPU time lost",
        *money_too,
        "Newest",
        "Suspected nodes",
    )


def group_row(group: Told, address: str, price: Price, zone: tzinfo) -> Sequence[Cell]:
    """Return one group; `address` is where its incidents are listed."""
    nodes = group["nodes"]
    spent = cost(group["lost_gpu_ns"], price)
    return (
        _signature(group, address),
        count(group["incidents"]),
        count(group["open"]),
        count(group["runs"]),
        trend(group, zone),
        gpu_hours(group["lost_gpu_ns"]),
        *(() if spent is None else (spent,)),
        markup.link(
            markup.address("incident", incident=group["newest"]), when(group["last"], zone)
        ),
        Markup(
            html=", ".join(
                markup.link(markup.address("hardware", node=node), node).html for node in nodes[:3]
            )
            + (escape(f" and {len(nodes) - 3} more") if len(nodes) > 3 else "")
        )
        if nodes
        else "none",
    )


def _signature(group: Told, address: str) -> Markup:
    below = group["signature"]
    small = ""
    if below is not None:
        small = f'<span class="hw-signature">{escape(readable(below))}</span>'
    return Markup(html=f"{markup.link(address, cause(group['cause'])).html}{small}")


def trend(group: Told, zone: tzinfo) -> Markup:
    """Return when the incidents of a group opened, as a row of small bars."""
    most = max(group["trend"]) or 1
    bars = "".join(f'<i style="height:{100 * n / most:.0f}%"></i>' for n in group["trend"])
    said = (
        f"{counted(group['incidents'], 'incident')} from {when(group['first'], zone)} "
        f"to {when(group['last'], zone)}"
    )
    return Markup(
        html=f'<span class="hw-trend" role="img" aria-label="{escape(said)}" '
        f'title="{escape(said)}">{bars}</span>'
    )


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


def story(one: Told) -> list[Moment]:
    """Return everything that happened in an incident in order of time.

    Evidence, what the attempts did and what people said stand in one list.
    """
    return sorted(_moments(one), key=lambda moment: (moment.time, not moment.first_fault))


def _moments(one: Told) -> Iterator[Moment]:
    for place, seen in enumerate(one["observations"]):
        where = seen["node"] or ""
        rank = "" if seen["rank"] is None else f"rank {seen['rank']}"
        if rank and f"on {rank}:" not in f"{seen['words']}:":
            where = f"{rank} on {where}" if where else rank
        yield Moment(
            time=seen["time"],
            words=readable(seen["words"]),
            where=where,
            kind="echo" if seen["echo"] else "evidence",
            first_fault=place == one["first_fault"],
            decides=place == one["decided_by"],
        )
    for tried in one["tries"]:
        state = "" if tried["resumed"] is None else f" from step {count(tried['resumed'])}"
        layer = plain(tried["layer"])
        yield Moment(
            time=tried["start"] if tried["began"] is None else tried["began"],
            words=f"Attempt {tried['number']} begins{state}, started by the {_layer(layer)}",
            kind="attempt",
        )
        if tried["cause"] is not None:
            yield Moment(
                time=tried["end"],
                words=f"Attempt {tried['number']} breaks: {plain(tried['cause'])}",
                kind="attempt",
            )
    for name, words in (
        ("recovered", "Training goes on: the first step after resuming is done"),
        ("caught_up", "Caught up: the old highest step is done again"),
        ("closed", "Closed: the attempt held"),
    ):
        if one[name] is not None:
            yield Moment(time=one[name], words=words, kind="recovery")
    for said in one["history"]:
        yield Moment(
            time=said["time"], words=remark(said), where=said["author"] or "", kind="person"
        )


def _layer(layer: str) -> str:
    return {"in process": "wrapper inside the process"}.get(layer, layer)


_KINDS: Mapping[str, str] = {
    "evidence": "",
    "echo": "echo",
    "attempt": "attempt",
    "recovery": "recovery",
    "person": "said",
}


def timeline(one: Told, zone: tzinfo) -> str:
    """Return the story of an incident as a list; the first fault stands out."""
    items = "".join(_item(moment, one["opened"], zone) for moment in story(one))
    return f'<ol class="hw-story">{items}</ol>'


def _item(moment: Moment, opened: int, zone: tzinfo) -> str:
    after = moment.time - opened
    offset = "" if after < 0 else f"+{duration(after)}"
    if after < 0:
        offset = f"{duration(-after)} before"
    badges = [
        "first fault" if moment.first_fault else _KINDS[moment.kind],
        "decides" if moment.decides else "",
    ]
    label = "".join(f'<span class="hw-badge">{escape(badge)}</span>' for badge in badges if badge)
    where = f'<span class="hw-where">{escape(moment.where)}</span>' if moment.where else ""
    kind = "hw-first" if moment.first_fault else f"hw-{moment.kind}"
    return (
        f'<li class="{kind}"><span class="hw-moment" title="{escape(when(moment.time, zone))}">'
        f"{escape(offset)}</span>"
        f'<span class="hw-words">{label}{escape(moment.words)} {where}</span></li>'
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
.hw-signature { display: block; font-size: 0.8rem; opacity: 0.8; white-space: normal;
  max-width: 26rem; overflow-wrap: anywhere; }
.hw-trend { display: inline-flex; align-items: flex-end; gap: 1px; height: 1.4rem; width: 6.5rem; }
.hw-trend i { flex: 1; min-height: 1px; background: currentColor; opacity: 0.65; }
@media (max-width: 640px) { .hw-signature { min-width: 9rem; } }
.hw-tall { height: 1.6rem; }
.hw-table.hw-pairs td { white-space: normal; overflow-wrap: anywhere; }
.hw-table.hw-pairs th { white-space: nowrap; }
@media (max-width: 640px) { .hw-table.hw-pairs th { white-space: normal; } }
.hw-story { list-style: none; margin: 0 !important; padding: 0 !important; max-width: 60rem;
  font-size: 0.95rem; }
.hw-story li { display: grid; list-style: none; grid-template-columns: 6.5rem 1fr;
  gap: 0.2rem 0.9rem;
  padding: 0.35rem 0.6rem; border-left: 3px solid rgba(123,135,148,0.45); margin: 0; }
.hw-story .hw-moment { text-align: right; font-variant-numeric: tabular-nums; opacity: 0.8;
  white-space: nowrap; }
.hw-story .hw-words { overflow-wrap: anywhere; }
.hw-story .hw-where { opacity: 0.8; white-space: nowrap; }
.hw-story .hw-badge { display: inline-block; font-size: 0.75rem; font-weight: 600;
  border: 1px solid currentColor; border-radius: 4px; padding: 0 0.35rem; margin-right: 0.5rem; }
.hw-story li.hw-first { border-left-color: #D55E00; background: rgba(213,94,0,0.14);
  font-weight: 600; }
.hw-story li.hw-recovery { border-left-color: #009E73; }
.hw-story li.hw-person { border-left-color: #0072B2; }
@media (max-width: 640px) { .hw-story li { grid-template-columns: 1fr; }
  .hw-story .hw-moment { text-align: left; font-size: 0.8rem; } }
</style>"""
"""Looks of these pieces; a page that shows them puts it first."""
