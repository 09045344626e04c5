"""How well recovery works: outcomes and times per cause and per layer.

Times are distributions (p50, p95, max), because a mean hides the one recovery that took an hour.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headway.events import LAYERS
from headway.incidents.model import PHASES

OUTCOMES = ("held_at_first", "held_after_retries", "escalated", "not_recovered", "open")
"""How an incident went: held at the first attempt, after more, in an outer layer, not (yet)."""
_OUTWARD = {layer: depth for depth, layer in enumerate(reversed(LAYERS))}
"""Layers from the innermost to the outermost."""


class Tried(Protocol):
    """One attempt to recover: the layer that made it, and what its time went to, in ns."""

    @property
    def layer(self) -> str:
        """Layer that made it."""

    @property
    def phases(self) -> Mapping[str, int]:
        """Time per phase."""


class Recovered(Protocol):
    """What is asked of an incident of one run, or of one of many; times in UTC ns."""

    @property
    def cause(self) -> str:
        """Its cause."""

    @property
    def outcome(self) -> str:
        """How it went, one of `OUTCOMES`."""

    @property
    def opened(self) -> int:
        """When it opened."""

    @property
    def recovered(self) -> int | None:
        """When the first step after it was completed."""

    @property
    def caught_up(self) -> int | None:
        """When the old highest step was completed again."""

    @property
    def phases(self) -> Mapping[str, int]:
        """Time per phase over all attempts to recover, in ns."""

    @property
    def tries(self) -> Sequence[Tried]:
        """The attempts to recover, in order."""


def outcome(layers: Sequence[str], held: bool, pending: bool) -> str:
    """Return the outcome of an incident from the layers of its attempts to recover."""
    if not held:
        return "open" if pending else "not_recovered"
    if len(layers) <= 1:
        return "held_at_first"
    outer = _OUTWARD.get(layers[-1], 0) > _OUTWARD.get(layers[0], 0)
    return "escalated" if outer else "held_after_retries"


@dataclass(slots=True)
class _Group:
    """Incidents of one cause or layer; times in ns."""

    outcomes: Counter[str] = field(default_factory=Counter)
    retries: list[int] = field(default_factory=list)
    recovered: list[int] = field(default_factory=list)
    caught_up: list[int] = field(default_factory=list)

    def add(self, incident: Recovered, outcome: str, retries: int, ended_it: bool) -> None:
        self.outcomes[outcome] += 1
        if not ended_it:
            return
        self.retries.append(retries)
        if incident.recovered is not None:
            self.recovered.append(incident.recovered - incident.opened)
        if incident.caught_up is not None:
            self.caught_up.append(incident.caught_up - incident.opened)

    def values(self) -> dict[str, Any]:
        settled = sum(self.outcomes.values()) - self.outcomes["open"]
        held = self.outcomes["held_at_first"] + self.outcomes["held_after_retries"]
        return {
            "incidents": sum(self.outcomes.values()),
            "outcomes": {name: self.outcomes[name] for name in OUTCOMES},
            "rate": held / settled if settled else None,
            "attempts": distribution(self.retries),
            "recovered_ns": distribution(self.recovered),
            "caught_up_ns": distribution(self.caught_up),
        }


def recovery(known: Sequence[Recovered]) -> dict[str, Any]:
    """Return the recovery of all incidents, by cause, by layer, and what the time went to.

    A layer is judged by what it tried itself: it held, at once or after more attempts, or an
    outer layer had to take over. Of the whole and of a cause the rate counts that as held, too.
    """
    whole = _Group()
    causes: dict[str, _Group] = defaultdict(_Group)
    layers: dict[str, _Group] = defaultdict(_Group)
    for incident in known:
        held = incident.outcome not in ("open", "not_recovered")
        for group in (whole, causes[incident.cause]):
            group.add(incident, incident.outcome, len(incident.tries), held)
        tried = Counter(one.layer for one in incident.tries)
        for layer, own in tried.items():
            ended_it = held and incident.tries[-1].layer == layer
            layers[layer].add(incident, _outcome_of(incident, layer, own), own, ended_it)
    return {
        "all": _whole(whole),
        "by_cause": {cause: _whole(group) for cause, group in sorted(causes.items())},
        "by_layer": {layer: layers[layer].values() for layer in LAYERS if layer in layers},
        "phases": {
            "per_incident": _phases(incident.phases for incident in known),
            "per_attempt": _phases(one.phases for incident in known for one in incident.tries),
        },
    }


def _phases(spent: Iterable[Mapping[str, int]]) -> dict[str, dict[str, int | None]]:
    """Return the distribution of each phase over incidents or attempts to recover."""
    listed = list(spent)
    return {name: distribution([phases[name] for phases in listed]) for name in PHASES}


def _whole(group: _Group) -> dict[str, Any]:
    """Return a group's values where an incident that an outer layer ended was recovered."""
    values = group.values()
    settled = values["incidents"] - group.outcomes["open"]
    lost = group.outcomes["not_recovered"]
    return {**values, "rate": (settled - lost) / settled if settled else None}


def _outcome_of(incident: Recovered, layer: str, own: int) -> str:
    """Return how an incident went for one of the layers that tried."""
    last = incident.tries[-1].layer
    if last != layer:
        return "escalated" if _OUTWARD.get(last, 0) > _OUTWARD.get(layer, 0) else "not_recovered"
    if incident.outcome in ("open", "not_recovered"):
        return incident.outcome
    return "held_at_first" if own == 1 else "held_after_retries"


def distribution(values: Sequence[int]) -> dict[str, int | None]:
    """Return count, median, 95th percentile and maximum; each percentile is one of the values."""
    ordered = sorted(values)
    return {
        "count": len(ordered),
        "p50": _nearest(ordered, 50),
        "p95": _nearest(ordered, 95),
        "max": ordered[-1] if ordered else None,
    }


def _nearest(ordered: Sequence[int], percent: int) -> int | None:
    """Return the smallest value that at least `percent` of all do not exceed."""
    if not ordered:
        return None
    return ordered[max(-(-len(ordered) * percent // 100), 1) - 1]
