"""What the pages read: the collector's answers, asked once for all viewers.

An answer lives a second: ten open pages ask the collector no more often than one does, and a
refresh never shows an older answer than its own interval.
"""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from headway.settings import ClientSettings, DashboardSettings, load
from headway.storage.client import CollectorClient

_LIFETIME = 1.0


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
    return max(_LIFETIME, load(DashboardSettings).refresh)


def runs() -> list[dict[str, Any]]:
    """Return the summaries of all runs, the newest first.

    Raises:
        CollectorError: no answer, with a sentence and the next step.
    """
    return _runs(load(ClientSettings))


def run_data(run: str) -> RunData:
    """Return what is known about a run, by its id or its name.

    Raises:
        CollectorError: no answer, with a sentence and the next step.
    """
    return _run_data(load(ClientSettings), run)


@st.cache_resource(show_spinner=False, max_entries=8, on_release=CollectorClient.close)
def _client(settings: ClientSettings) -> CollectorClient:
    return CollectorClient(settings)


@st.cache_data(ttl=_LIFETIME, max_entries=8, show_spinner=False)
def _runs(settings: ClientSettings) -> list[dict[str, Any]]:
    return _client(settings).runs()


@st.cache_data(ttl=_LIFETIME, max_entries=16, show_spinner=False)
def _run_data(settings: ClientSettings, run: str) -> RunData:
    client = _client(settings)
    # A name stands for its newest run: the three answers must be about the same one.
    answer = client.report(run)
    return RunData(
        report=answer,
        intervals=client.intervals(answer["run"]),
        points=client.steps(answer["run"]),
    )
