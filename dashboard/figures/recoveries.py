"""How long recoveries take, what their time goes to, and how many attempts they need."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway.dashboard.bars import Part, Row
from headway.dashboard.figures.style import SECOND, styled
from headway.incidents.model import PHASES
from headway.incidents.vocabulary import PHASE_COLOURS
from headway.wording import count, counted, duration, percent, titled

Group = Mapping[str, Any]
"""One cause or layer, as the API tells it."""

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
_TICKS: Mapping[int, str] = {
    1: "1 s",
    10: "10 s",
    60: "1 min",
    600: "10 min",
    3_600: "1 h",
    6 * 3_600: "6 h",
    86_400: "1 d",
    7 * 86_400: "7 d",
}
"""Seconds at which the logarithmic axis is marked; shorter times are drawn at one."""
MOST_CURVES = len(_COLOURS)
_MOST_ATTEMPTS = 5


def curves(groups: Mapping[str, Group]) -> go.Figure:
    """Return the share of recoveries that took at most so long, for the most frequent groups."""
    figure = go.Figure()
    shown = [name for name in by_size(groups) if groups[name]["curve"]["ns"]][:MOST_CURVES]
    for place, name in enumerate(shown):
        curve, number = groups[name]["curve"], groups[name]["recovered_ns"]["count"]
        seconds = [max(ns, SECOND) / SECOND for ns in curve["ns"]]
        figure.add_scatter(
            name=f"{titled(name)} ({count(number)})",
            x=[seconds[0], *seconds],
            y=[0, *(100 * share for share in curve["share"])],
            mode="lines+markers" if number < 10 else "lines",
            marker_size=6,
            line={
                "shape": "hv",
                "width": 2,
                "color": _COLOURS[place],
                "dash": _DASHES[place],
            },
            hovertext=[
                f"<b>{titled(name)}</b><br>{percent(share)} of "
                f"{counted(number, 'recovery', 'recoveries')} took at most {duration(ns)}"
                for ns, share in zip(
                    [curve["ns"][0], *curve["ns"]], [0.0, *curve["share"]], strict=True
                )
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    styled(figure, 360, showlegend=True)
    figure.update_yaxes(range=[0, 102], ticksuffix=" %", fixedrange=True)
    figure.update_xaxes(
        type="log",
        title="Time from the fault to the first step after it",
        tickvals=list(_TICKS),
        ticktext=list(_TICKS.values()),
        tickangle=0,
        fixedrange=True,
    )
    return figure


def phases(groups: Mapping[str, Group]) -> list[Row]:
    """Return what the time of all incidents of each group went to, phase by phase."""
    shown = [name for name in by_time(groups) if any(groups[name]["phase_ns"].values())]
    longest = max((sum(groups[name]["phase_ns"].values()) for name in shown), default=0)
    return [_phases(titled(name), groups[name]["phase_ns"], longest) for name in shown]


def _phases(name: str, times: Mapping[str, int], longest: int) -> Row:
    whole, used = sum(times.values()), [phase for phase in PHASES if times[phase]]
    ends = accumulate(times[phase] for phase in used)
    return Row(
        name=name,
        parts=[
            Part(
                begin=(end - times[phase]) / longest,
                width=times[phase] / longest,
                colour=PHASE_COLOURS[phase],
            )
            for phase, end in zip(used, ends, strict=True)
        ],
        amount=duration(whole),
        meaning=[
            f"{phase.capitalize()}: {duration(times[phase])}, {percent(times[phase] / whole)}"
            for phase in used
        ],
    )


def phase_colours(groups: Mapping[str, Group]) -> Mapping[str, str]:
    """Return what the colours of phases mean."""
    return {
        phase.capitalize(): PHASE_COLOURS[phase]
        for phase in PHASES
        if any(one["phase_ns"][phase] for one in groups.values())
    }


def attempts(groups: Mapping[str, Group]) -> go.Figure:
    """Return how many recoveries needed one attempt, two, and so on, by group."""
    figure = go.Figure()
    places = [*map(str, range(1, _MOST_ATTEMPTS)), f"{_MOST_ATTEMPTS} or more"]
    shown = [name for name in by_size(groups) if groups[name]["attempts_needed"]][:MOST_CURVES]
    for place, name in enumerate(shown):
        figure.add_bar(
            name=titled(name),
            x=places,
            y=_needed(groups[name]["attempts_needed"]),
            marker_color=_COLOURS[place],
            hovertemplate=f"{titled(name)}: %{{y}} with %{{x}} attempts<extra></extra>",
        )
    styled(figure, 250, barmode="stack", bargap=0.35, showlegend=True)
    figure.update_xaxes(title="Attempts until training went on", type="category", fixedrange=True)
    figure.update_yaxes(title="Recoveries", rangemode="tozero", tickformat=",d", fixedrange=True)
    return figure


def by_size(groups: Mapping[str, Group]) -> list[str]:
    """Return the groups with the most recoveries first."""
    return sorted(groups, key=lambda name: (-groups[name]["recovered_ns"]["count"], name))


def by_time(groups: Mapping[str, Group]) -> list[str]:
    """Return the groups that took most time first."""
    return sorted(groups, key=lambda name: (-sum(groups[name]["phase_ns"].values()), name))


def _needed(found: Mapping[str, int]) -> list[int]:
    numbers = [found.get(str(number), 0) for number in range(1, _MOST_ATTEMPTS)]
    more = sum(amount for number, amount in found.items() if int(number) >= _MOST_ATTEMPTS)
    return [*numbers, more]
