"""Incidents of a kind: the sentence about all of them, and a row for each group. Pure functions."""

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from html import escape

from headway.dashboard import markup
from headway.dashboard.incident_rows import Price, Told, cause, cost, readable
from headway.dashboard.markup import Cell, Markup
from headway.wording import count, counted, gpu_hours, percent, when

STYLE = """<style>
.hw-signature { display: block; font-size: 0.8rem; opacity: 0.8; white-space: normal;
  max-width: 26rem; overflow-wrap: anywhere; }
.hw-trend { display: inline-flex; align-items: flex-end; gap: 1px; height: 1.4rem; width: 6.5rem; }
.hw-trend i { flex: 1; min-height: 1px; background: currentColor; opacity: 0.65; }
@media (max-width: 640px) { .hw-signature { min-width: 9rem; } }
</style>"""
"""Looks of these pieces; a page that shows them puts it first."""


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
