"""Rows and sentences about recoveries. Pure functions."""

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from html import escape
from typing import Any

from headway.dashboard import markup
from headway.dashboard.fleet_rows import incident_link
from headway.dashboard.markup import Cell, Markup
from headway.incidents.model import PHASES
from headway.wording import (
    UNKNOWN,
    count,
    counted,
    duration,
    gpu_hours,
    percent,
    plain,
    titled,
    when,
)

SLOW_COLUMNS = ("Circumstance", "#Among the slow", "#Among the others", "#Chance", "Verdict")
TAIL_COLUMNS = (
    "#Took",
    "Phases",
    "Run",
    "Incident",
    "Recovered by",
    "#Attempts",
    "#GPU time lost",
    "Valid",
    "Opened",
)


def headline(found: Mapping[str, Any]) -> str:
    """Return recovery in two sentences: how many and how fast, and what takes most of the time."""
    whole = found["all"]
    times = whole["recovered_ns"]
    if not times["count"]:
        return f"None of {counted(found['incidents'], 'incident')} has recovered."
    text = (
        f"{count(whole['held'])} of {counted(whole['settled'], 'incident')} recovered: half within "
        f"{duration(times['p50'])}, 19 of 20 within {duration(times['p95'])}."
    )
    spent = sum(whole["phase_ns"].values())
    phase = max(PHASES, key=lambda name: whole["phase_ns"][name])
    if spent:
        share = percent(whole["phase_ns"][phase] / spent)
        text += f" Most of their time goes to {_DOING[phase]} ({share})."
    worst = max(found["by_cause"], key=lambda name: found["by_cause"][name]["lost_gpu_ns"])
    lost = found["by_cause"][worst]["lost_gpu_ns"]
    if lost:
        text += f" The costliest cause is {plain(worst)}: {gpu_hours(lost)}."
    return text


_DOING: Mapping[str, str] = {
    "detect": "noticing the fault",
    "teardown": "stopping what is left",
    "wait": "waiting for a start",
    "start": "starting up",
    "load": "loading checkpoints",
    "recompute": "doing steps again",
}


def interval(group: Mapping[str, Any]) -> str:
    """Return the interval of a rate: `71.2 to 93.4 %`."""
    if group["rate_low"] is None:
        return UNKNOWN
    low, high = percent(group["rate_low"]), percent(group["rate_high"])
    return f"{low.removesuffix(' %')} to {high}"


def rate_columns(by: str) -> Sequence[str]:
    """Return the headings of the table of rates."""
    return (
        by,
        "#Incidents",
        "#Open",
        "#Held at once",
        "#After more attempts",
        "#Escalated",
        "#Not recovered",
        "#Rate",
        "#95 % interval",
        "#p50",
        "#p95",
        "#Longest",
        "#Attempts per success",
        "#GPU time lost",
    )


def rate_row(name: str, group: Mapping[str, Any]) -> Sequence[Cell]:
    """Return the rate of one cause or layer with the counts that it rests on."""
    times, outcomes = group["recovered_ns"], group["outcomes"]
    per = group["attempts_per_success"]
    return (
        titled(name),
        count(group["incidents"]),
        *(
            count(outcomes[each])
            for each in (
                "open",
                "held_at_first",
                "held_after_retries",
                "escalated",
                "not_recovered",
            )
        ),
        percent(group["rate"]),
        interval(group),
        *("" if times[each] is None else duration(times[each]) for each in ("p50", "p95", "max")),
        "" if per is None else f"{per:.2f}",
        gpu_hours(group["lost_gpu_ns"]),
    )


def slow_sentence(slow: Mapping[str, Any]) -> str:
    """Return what was compared and what stands out."""
    text = (
        f"{counted(slow['slow'], 'recovery', 'recoveries')} of {duration(slow['threshold_ns'])} or "
        f"longer against {counted(slow['others'], 'shorter one')}. "
    )
    sure = [one for one in slow["differences"] if one["stands_out"]]
    if not sure:
        return f"{text}Nothing stands out: chance explains every difference."
    names = ", ".join(f"{one['what']} {one['value']}" for one in sure[:3])
    return f"{text}More often than chance explains: {names}."


def slow_row(one: Mapping[str, Any], slow: Mapping[str, Any]) -> Sequence[Cell]:
    """Return how often one circumstance is met among slow recoveries and among the others."""
    return (
        f"{one['what']}: {one['value']}",
        _part(one["slow"], slow["slow"]),
        _part(one["others"], slow["others"]),
        percent(one["chance"]),
        "stands out" if one["stands_out"] else "may be chance",
    )


def tail_row(one: Mapping[str, Any], colours: Mapping[str, str], zone: tzinfo) -> Sequence[Cell]:
    """Return one slow recovery with its phases and links to its evidence."""
    return (
        duration(one["recovered_ns"]),
        _bar(one["phases"], colours),
        markup.run_link(one["run"], one["run_name"]),
        incident_link(one, one["headline"]),
        UNKNOWN if one["layer"] is None else plain(one["layer"]),
        count(one["attempts"]),
        gpu_hours(one["lost_gpu_ns"]),
        one["valid"],
        when(one["opened"], zone),
    )


def _part(hits: int, of: int) -> str:
    return f"{count(hits)} of {count(of)}"


def _bar(phases: Mapping[str, int], colours: Mapping[str, str]) -> Cell:
    whole = sum(phases.values())
    if not whole:
        return ""
    parts = [(name, phases[name]) for name in PHASES if phases[name]]
    words = ", ".join(f"{name} {duration(amount)}" for name, amount in parts)
    spans = "".join(
        f'<span style="width:{100 * amount / whole:.3f}%;background:{colours[name]}" '
        f'title="{escape(name)}: {escape(duration(amount))}"></span>'
        for name, amount in parts
    )
    return Markup(html=f'<div class="hw-bar" role="img" aria-label="{escape(words)}">{spans}</div>')
