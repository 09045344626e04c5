"""Dashboards of Grafana from rows of panels: places, numbers, variables, annotations, links.

The classic schema (version 39) loads in every Grafana from 10 on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.grafana.panels import COLUMNS, PROMETHEUS, Row, panel_object

SCHEMA_VERSION = 39
DASHBOARD = "http://127.0.0.1:8752"
"""Address of Headway's own dashboard, unless the variable `dashboard` says another."""
_INCIDENTS = 'max by (run, incident, cause) (headway_open_incident_gpu_seconds{run=~"$run"})'
_DEPLOYS = 'changes(headway_attempts_total{run=~"$run"}[$__rate_interval]) > 0'


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One choice above a dashboard: the values of a label of a metric."""

    name: str
    title: str
    metric: str
    label: str
    multi: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One dashboard; `uid` never changes, since links lead to it."""

    uid: str
    title: str
    description: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()
    marked: bool = True
    """Whether incidents and new attempts are marked on its time axes."""


RUN = Variable(name="run", title="Run", metric="headway_elapsed_seconds", label="run")
NODE = Variable(name="node", title="Node", metric="headway_node_failures_total", label="node")


def board_object(board: Board, boards: Sequence[Board]) -> dict[str, Any]:
    """Return a dashboard as Grafana's classic schema has it, with links to its siblings.

    Raises:
        ValueError: a row whose panels are wider than the grid.
    """
    panels: list[dict[str, Any]] = []
    y = 0
    for row in board.rows:
        heading = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
        number = len(panels) + 1
        panels.append(
            {
                "id": number,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "gridPos": heading,
                "panels": [],
            }
        )
        y += 1
        x = highest = 0
        for panel in row.panels:
            if panel.width > COLUMNS:
                raise ValueError(f"panel {panel.title!r} is wider than the grid of {COLUMNS}")
            if x + panel.width > COLUMNS:
                x, y, highest = 0, y + highest, 0
            panels.append(panel_object(panel, len(panels) + 1, x, y))
            x += panel.width
            highest = max(highest, panel.height)
        y += highest
    return {
        "uid": board.uid,
        "title": f"Headway / {board.title}",
        "description": board.description,
        "tags": ["headway"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-24h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [_source(), _address(), *map(_variable, board.variables)]},
        "annotations": {"list": _annotations() if board.marked else []},
        "links": [_link(one) for one in boards if one.uid != board.uid],
        "panels": panels,
    }


def _source() -> dict[str, Any]:
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "hide": 0,
        "regex": "",
        "refresh": 1,
    }


def _address() -> dict[str, Any]:
    """Return the choice that says where the links of panels lead: Headway's own dashboard."""
    current = {"text": DASHBOARD, "value": DASHBOARD}
    return {
        "name": "dashboard",
        "label": "Headway",
        "type": "textbox",
        "query": DASHBOARD,
        "current": current,
        "options": [{**current, "selected": True}],
        "hide": 2,
    }


def _variable(one: Variable) -> dict[str, Any]:
    query = f"label_values({one.metric}, {one.label})"
    every = {"allValue": ".*"} if one.multi else {}
    return {
        "name": one.name,
        "label": one.title,
        "type": "query",
        "datasource": dict(PROMETHEUS),
        "query": {"query": query, "refId": one.name},
        "refresh": 2,
        "sort": 1,
        "multi": one.multi,
        "includeAll": one.multi,
        **every,
        "hide": 0,
    }


def _annotations() -> list[Mapping[str, Any]]:
    return [
        {
            "name": "Incidents",
            "datasource": dict(PROMETHEUS),
            "enable": True,
            "iconColor": "#D55E00",
            "target": {"refId": "Anno", "expr": _INCIDENTS, "interval": "60s"},
            "titleFormat": "{{run}}: {{cause}}",
            "textFormat": "Incident {{incident}}",
        },
        {
            "name": "Attempts",
            "datasource": dict(PROMETHEUS),
            "enable": True,
            "iconColor": "#0072B2",
            "target": {"refId": "Anno", "expr": _DEPLOYS, "interval": "60s"},
            "titleFormat": "{{run}}: a new attempt",
            "textFormat": "It may run another revision or configuration: see the Run page.",
        },
    ]


def _link(board: Board) -> dict[str, Any]:
    return {
        "title": board.title,
        "type": "link",
        "url": f"/d/{board.uid}?${{__url_time_range}}",
        "icon": "external link",
        "tooltip": board.description,
        "targetBlank": False,
        "tags": [],
        "asDropdown": False,
        "includeVars": False,
        "keepTime": False,
    }
