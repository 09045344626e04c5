"""What the pages read: the collector's answers, asked for once for all viewers."""

from dataclasses import dataclass
from string import Formatter
from typing import Any
from urllib.parse import quote, urlencode

import streamlit as st

from headway.dashboard.answers import LIFETIME, Answers
from headway.settings import ClientSettings, DashboardSettings, load
from headway.storage.client import CollectorClient

_API = "/api/v1"
_ITEMS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """Everything that the Run page shows about one run."""

    report: dict[str, Any]
    intervals: list[dict[str, Any]]
    points: list[dict[str, Any]]

    @property
    def live(self) -> bool:
        """Whether the next answer may differ."""
        return bool(self.report["provisional"] or self.report["state"] == "running")


def refresh_interval() -> float:
    """Return the seconds between two refreshes of a live page."""
    return max(LIFETIME, load(DashboardSettings).refresh)


def answer(path: str, **parameters: Any) -> dict[str, Any]:
    """Return an answer of the read API, the same object for every viewer: it must not be changed.

    `path` comes after `/api/v1/`. Parameters that it names in braces are put there, the others
    are the query; `None` is not sent: `answer("runs/{run}/steps", run=name, points=500)`.

    Raises:
        CollectorError: no answer, with a sentence and the next step; see its subclasses.
    """
    place, asked = _question(path, parameters)
    return _answers(load(ClientSettings)).get(place, asked)


def items(path: str, name: str, **parameters: Any) -> list[dict[str, Any]]:
    """Return the items of all pages of a list, as `answer` would give each.

    Raises:
        CollectorError: no answer, with a sentence and the next step.
    """
    asked = {"limit": _ITEMS_AT_ONCE, **parameters}
    found: list[dict[str, Any]] = []
    while True:
        page = answer(path, **asked)
        found += page[name]
        if page.get("next") is None:
            return found
        asked["cursor"] = page["next"]


def query(path: str, **parameters: Any) -> str:
    """Return how anybody can ask for the same answer: `GET /api/v1/runs/demo/report`."""
    place, asked = _question(path, parameters)
    return f"GET {place}" + (f"?{urlencode(asked, doseq=True)}" if asked else "")


def client() -> CollectorClient:
    """Return the client for what is no answer to keep: SQL, and what people say."""
    return _answers(load(ClientSettings)).client


def doubt() -> None:
    """Ask the collector again for whatever is wanted next: something was just changed."""
    _answers(load(ClientSettings)).doubt()


def runs() -> list[dict[str, Any]]:
    """Return the summaries of all runs, the newest first.

    Raises:
        CollectorError: no answer, with a sentence and the next step.
    """
    return items("runs", "runs")


def run_data(run: str) -> RunData:
    """Return what is known about a run, by its id or its name.

    Raises:
        CollectorError: no answer, with a sentence and the next step.
    """
    report = answer("runs/{run}/report", run=run)
    # A name stands for its newest run: the three answers must be about the same one.
    same = report["run"]
    return RunData(
        report=report,
        intervals=answer("runs/{run}/intervals", run=same)["intervals"],
        points=answer("runs/{run}/steps", run=same, points=2_000)["points"],
    )


def _question(path: str, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    named = {name for _, name, _, _ in Formatter().parse(path) if name}
    place = path.format(**{name: quote(str(parameters[name]), safe="") for name in named})
    asked = {
        name: value for name, value in parameters.items() if name not in named and value is not None
    }
    return f"{_API}/{place}", asked


@st.cache_resource(show_spinner=False, max_entries=8, on_release=Answers.close)
def _answers(settings: ClientSettings) -> Answers:
    return Answers(CollectorClient(settings))
