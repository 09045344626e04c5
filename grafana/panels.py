"""What a panel of a Grafana dashboard is, before it has a place. Data and pure functions.

A panel's unit and description come from the metric it is about, so that Grafana says what the
reference page says.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from headway.metrics import CATEGORIES, METRICS

PROMETHEUS: Mapping[str, str] = {"type": "prometheus", "uid": "${datasource}"}
INFINITY: Mapping[str, str] = {"type": "yesoreyeram-infinity-datasource", "uid": "headway-api"}
"""The collector's read API, through the data source plugin Infinity."""
COLUMNS = 24
"""Columns of Grafana's grid."""
_UNITS = {"seconds": "s", "s": "s", "bytes": "bytes", "celsius": "celsius", "watts": "watt"}
_NAME = re.compile(r"\bheadway_[a-z_]+")
Kind = Literal["timeseries", "stat", "table", "bargauge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One query: PromQL, or a table of the read API."""

    query: str
    legend: str = "__auto"
    instant: bool = False
    columns: tuple[tuple[str, str, str], ...] = ()
    """For a table of the read API: selector, title and type of each column."""
    root: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel; `about` is the metric whose unit and description it takes."""

    title: str
    targets: tuple[Target, ...]
    about: str | None = None
    kind: Kind = "timeseries"
    width: int = 8
    height: int = 8
    unit: str | None = None
    description: str | None = None
    stacked: bool = False
    lowest: float | None = None
    highest: float | None = None
    thresholds: tuple[tuple[float, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    hidden: tuple[str, ...] = field(default=())
    """Labels that a table leaves out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A heading, and the panels below it, from left to right."""

    title: str
    panels: tuple[Panel, ...]


def panel_object(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    """Return a panel as Grafana's classic schema has it."""
    infinity = any(target.columns for target in panel.targets)
    source = INFINITY if infinity else PROMETHEUS
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": description_of(panel),
        "datasource": dict(source),
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "targets": [
            _target(target, chr(ord("A") + place), dict(source), panel.kind == "table")
            for place, target in enumerate(panel.targets)
        ],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": _colours(panel)},
        "options": _options(panel),
        "transformations": _transformations(panel),
    }


def description_of(panel: Panel) -> str:
    """Return what the panel shows, in the words of its metric unless it has its own."""
    if panel.description is not None:
        return panel.description
    if panel.about is None:
        raise ValueError(f"panel {panel.title!r} is about no metric and describes nothing")
    return METRICS[panel.about].description


def unit_of(panel: Panel) -> str:
    """Return Grafana's name of the panel's unit."""
    if panel.unit is not None:
        return panel.unit
    if panel.about is None:
        return "none"
    metric = METRICS[panel.about]
    if metric.unit is not None:
        return _UNITS[metric.unit]
    return "percentunit" if metric.name.endswith("goodput_ratio") else "none"


def metrics_of(query: str) -> set[str]:
    """Return the metrics that a query reads."""
    return set(_NAME.findall(query))


def _target(target: Target, ref: str, source: dict[str, str], table: bool) -> dict[str, Any]:
    if target.columns:
        return {
            "refId": ref,
            "datasource": source,
            "type": "json",
            "source": "url",
            "format": "table",
            "parser": "backend",
            "url": target.query,
            "url_options": {"method": "GET"},
            "root_selector": target.root,
            "columns": [
                {"selector": selector, "text": text, "type": kind}
                for selector, text, kind in target.columns
            ],
        }
    return {
        "refId": ref,
        "datasource": source,
        "expr": target.query,
        "legendFormat": target.legend,
        "instant": target.instant,
        "range": not target.instant,
        "format": "table" if table else "time_series",
    }


def _defaults(panel: Panel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    steps += [{"color": colour, "value": value} for value, colour in panel.thresholds]
    found: dict[str, Any] = {
        "unit": unit_of(panel),
        "thresholds": {"mode": "absolute", "steps": steps if panel.thresholds else steps[:1]},
        "color": {"mode": "thresholds" if panel.thresholds else "palette-classic"},
        "links": [{"title": text, "url": url, "targetBlank": True} for text, url in panel.links],
    }
    if panel.lowest is not None:
        found["min"] = panel.lowest
    if panel.highest is not None:
        found["max"] = panel.highest
    if panel.kind == "timeseries":
        found["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 60 if panel.stacked else 8,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        }
    return found


def _colours(panel: Panel) -> list[dict[str, Any]]:
    """Return the palette's colours, where the legend names categories of the ledger."""
    if not any("{{category}}" in target.legend for target in panel.targets):
        return []
    return [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [
                {"id": "color", "value": {"mode": "fixed", "fixedColor": category.colour}},
                {"id": "displayName", "value": category.title},
            ],
        }
        for name, category in CATEGORIES.items()
    ]


def _options(panel: Panel) -> dict[str, Any]:
    reduced = {
        "reduceOptions": {"values": False, "calcs": ["lastNotNull"], "fields": ""},
        "orientation": "horizontal" if panel.kind == "bargauge" else "auto",
    }
    legend = {"displayMode": "list", "placement": "bottom", "calcs": []}
    match panel.kind:
        case "timeseries":
            return {
                "legend": {**legend, "showLegend": True},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }
        case "stat":
            return {
                **reduced,
                "graphMode": "area",
                "colorMode": "value",
                "justifyMode": "auto",
                "textMode": "auto",
                "wideLayout": True,
                "showPercentChange": False,
                "percentChangeColorMode": "standard",
            }
        case "bargauge":
            return {
                **reduced,
                "displayMode": "basic",
                "valueMode": "color",
                "namePlacement": "auto",
                "showUnfilled": True,
                "sizing": "auto",
                "minVizWidth": 8,
                "minVizHeight": 16,
                "maxVizHeight": 300,
                "legend": {**legend, "showLegend": False},
            }
        case "table":
            return {"showHeader": True, "cellHeight": "sm", "frameIndex": 0}


def _transformations(panel: Panel) -> Sequence[Mapping[str, Any]]:
    if panel.kind != "table" or any(target.columns for target in panel.targets):
        return []
    hidden = dict.fromkeys(("Time", "__name__", "job", "instance", *panel.hidden), True)
    names = {
        f"Value #{chr(ord('A') + place)}": one.legend for place, one in enumerate(panel.targets)
    }
    if len(panel.targets) == 1:
        names = {"Value": panel.targets[0].legend}
    organize = {"id": "organize", "options": {"excludeByName": hidden, "renameByName": names}}
    return [*([{"id": "merge", "options": {}}] if len(panel.targets) > 1 else []), organize]
