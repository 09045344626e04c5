"""Rows of the tables about runs, groups of runs, nodes and incidents. Pure functions."""

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from html import escape
from typing import Any

from headway import metrics
from headway.dashboard import markup, sentences
from headway.dashboard.markup import Cell, Markup
from headway.fleet import words
from headway.wording import (
    UNKNOWN,
    count,
    counted,
    duration,
    gpu_hours,
    percent,
    plain,
    ratio_range,
    when,
)

Price = Mapping[str, Any] | None
NODE_COLUMNS = (
    "Node",
    "#Failures",
    "#Per 1,000 node-days",
    "#95 % interval",
    "#Incidents",
    "#GPU time lost",
    "Last failure",
)
_SMALLEST = 0.0005
"""Changes of a ratio below this read as none."""


def points(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the change of a goodput in percentage points, as `numbers.Row.number` takes it."""
    if before is None:
        return {}
    if now["low"] is None or before["low"] is None:
        return {"delta": "nothing before to compare"}
    change = now["low"] - before["low"]
    if abs(change) < _SMALLEST:
        return {"delta": "as before"}
    return {
        "delta": f"{100 * change:+.1f} points",
        "delta_color": "normal",
        "delta_arrow": "auto",
    }


def change(now: int, before: int | None, words_of: Callable[[int], str]) -> dict[str, Any]:
    """Return the change of a loss, of which less is better, as `numbers.Row.number` takes it."""
    if before is None:
        return {}
    if now == before:
        return {"delta": "as before"}
    sign = "-" if now < before else "+"
    return {
        "delta": f"{sign}{words_of(abs(now - before))}",
        "delta_color": "inverse",
        "delta_arrow": "auto",
    }


RUN_COLUMNS = (
    "Run",
    "#Lost",
    "Mainly to",
    "Costliest incident",
    "Over time",
    "#Goodput",
    "#Attempts",
    "#Step",
    "#Checkpoint age",
)


def run_row(one: Mapping[str, Any], price: Price) -> Sequence[Cell]:
    """Return one run with what it lost, to what, and how it stands."""
    time = one["gpu_time"] if one["gpu_time"]["elapsed_ns"] else one["wall_time"]
    worst = one["worst_incident"]
    return (
        markup.two_lines(markup.run_link(one["run"], one["run"]), state(one)),
        markup.two_lines(
            words.lost(one["lost_gpu_ns"]), words.cost(one["lost_cost"], price) if price else ""
        ),
        main_loss(one),
        "none"
        if worst is None
        else markup.two_lines(
            incident_link(worst, incident_name(worst)), gpu_hours(worst["lost_gpu_ns"])
        ),
        strip(one),
        goodputs(time),
        count(one["attempts"]),
        markup.two_lines(sentences.progress(one), arrival(one)),
        sentences.checkpoint_age(one),
    )


def goodputs(time: Mapping[str, Any]) -> Cell:
    """Return training goodput, and below it infrastructure goodput."""
    training, infrastructure = time["training_goodput"], time["infrastructure_goodput"]
    return markup.two_lines(
        ratio_range(**training), f"infrastructure {ratio_range(**infrastructure)}"
    )


def state(one: Mapping[str, Any]) -> Cell:
    """Return the state of a run, with the link to its open incidents where there are any."""
    if not one["open_incidents"]:
        return plain(one["state"])
    address = markup.address("incidents", run=one["run"], state="open")
    opened = markup.link(address, counted(one["open_incidents"], "open incident"))
    return Markup(html=f"{escape(plain(one['state']))}, {opened.html}")


def headline(group: Mapping[str, Any], worst: Mapping[str, Any] | None) -> Markup:
    """Return who loses most, to what and whose fault it is; the run and its incident are links."""
    text = words.headline(group, worst)
    marked: dict[str, Markup | None] = {}
    if worst is not None:
        marked |= {
            worst["run_name"]: markup.run_link(worst["run"], worst["run_name"]),
            words.lost(worst["lost_gpu_ns"]): None,
        }
        if worst["largest_loss"] is not None:
            title = metrics.category(worst["largest_loss"]["category"]).title.lower()
            marked[f"mainly {title}"] = None
        found = worst["worst_incident"]
        if found is not None:
            marked[incident_name(found)] = incident_link(found, incident_name(found))
    marked[words.side_shares(group).partition(",")[0]] = None
    return markup.spoken(text, marked)


def main_loss(one: Mapping[str, Any]) -> Cell:
    """Return the category that took most of a run's time beside progress."""
    loss = one["largest_loss"]
    if loss is None:
        return "nothing"
    share = loss["gpu_ns"] / one["gpu_time"]["elapsed_ns"]
    return markup.two_lines(metrics.category(loss["category"]).title, percent(share))


def arrival(one: Mapping[str, Any]) -> str:
    """Return when a live run reaches its target if it goes on as before; empty without one."""
    found = one["arrival"]
    if found is None:
        return ""
    if not found["steps_left"]:
        return "target reached"
    early, late = (
        None if end is None else duration(max(end - one["as_of"], 0))
        for end in (found["low"], found["high"])
    )
    if early is None:
        return "never at this rate"
    if late is None:
        return f"there in {early} or later"
    return f"there in {early}" if early == late else f"there in {early} to {late}"


def strip(one: Mapping[str, Any]) -> Cell:
    """Return the states of a run over time as one line."""
    parts = one["strip"]
    if not parts:
        return ""
    first, last = parts[0]["start"], parts[-1]["end"]
    spans = []
    for part in parts:
        category = metrics.category(part["category"])
        length = part["end"] - part["start"]
        spans.append(
            f'<span style="width:{100 * length / (last - first):.3f}%;'
            f'background:{category.colour}" title="{escape(category.title)}, '
            f"{escape(duration(length))}, {escape(duration(part['start'] - first))} after its "
            'begin"></span>'
        )
    losses = sum(part["category"] != "productive" for part in parts)
    label = f"{duration(last - first)}, {counted(losses, 'stretch', 'stretches')} of losses"
    return Markup(
        html=f'<div class="hw-bar" role="img" aria-label="{escape(label)}">{"".join(spans)}</div>'
    )


def incident_name(one: Mapping[str, Any]) -> str:
    """Return an incident in a few words: `gpu fault on node-7`."""
    where = "" if one["node"] is None else f" on {one['node']}"
    return f"{plain(one['cause'])}{where}"


def incident_link(one: Mapping[str, Any], text: str) -> Markup:
    """Return the link to the page of an incident, with its evidence."""
    return markup.link(markup.address("incident", incident=one["incident"]), text)


def total_columns(by: str) -> Sequence[str]:
    """Return the headings of the table of totals."""
    return (
        by[:1].upper() + by[1:],
        "#Runs",
        "#Running",
        "#GPU time",
        "#Goodput",
        "#Lost",
        "#Incidents",
        "#Between failures",
        "#Recovery, p50",
        "Whose the incidents are",
    )


def total_row(one: Mapping[str, Any], price: Price) -> Sequence[Cell]:
    """Return the totals of one group, as the terminal prints them."""
    time, recovered = one["gpu_time"], one["recovered_ns"]
    return (
        "without it" if one["label"] is None else one["label"],
        count(one["runs"]),
        count(one["running"]),
        gpu_hours(time["elapsed_ns"]),
        goodputs(time),
        markup.two_lines(
            words.lost(one["lost_gpu_ns"]), words.cost(one["lost_cost"], price) if price else ""
        ),
        count(one["incidents"]),
        words.mtbf(one["mtbf"]),
        ""
        if recovered["p50"] is None
        else markup.two_lines(duration(recovered["p50"]), f"p95 {duration(recovered['p95'])}"),
        words.side_shares(one) or "none",
    )


def node_row(one: Mapping[str, Any], zone: tzinfo) -> Sequence[Cell]:
    """Return one node with its failures, their rate and their cost."""
    found = one["per_1000_node_days"]
    return (
        markup.link(markup.address("hardware", node=one["node"]), one["node"]),
        count(one["failures"]),
        UNKNOWN if found["rate"] is None else f"{found['rate']:,.1f}",
        UNKNOWN if found["rate"] is None else f"{found['low']:,.1f} to {found['high']:,.1f}",
        count(len(one["incidents"])),
        gpu_hours(one["gpu_ns"]),
        "never" if one["last_failure"] is None else when(one["last_failure"], zone),
    )


def rate(found: Mapping[str, Any]) -> str:
    """Return a rate with its interval: `5.0 (95 % interval 2.4 to 9.2)`."""
    if found["rate"] is None:
        return UNKNOWN
    return f"{found['rate']:,.1f} (95 % interval {found['low']:,.1f} to {found['high']:,.1f})"
