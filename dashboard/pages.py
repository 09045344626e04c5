"""The pages: their names, their places in the address and what draws them, in reading order."""

from collections.abc import Callable
from dataclasses import dataclass

from headway.dashboard.views import (
    alerts,
    explore,
    fleet,
    hardware,
    health,
    incident,
    incidents,
    recovery,
    run,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page; a `listed` one is in the menu, a `plotted` one draws figures when it opens."""

    title: str
    path: str
    draw: Callable[[], None]
    listed: bool = True
    plotted: bool = False


PAGES = (
    Page(title="Fleet", path="fleet", draw=fleet.page, plotted=True),
    Page(title="Run", path="run", draw=run.page, plotted=True),
    Page(title="Incidents", path="incidents", draw=incidents.page),
    Page(title="Incident", path="incident", draw=incident.page, listed=False),
    Page(title="Recovery", path="recovery", draw=recovery.page, plotted=True),
    Page(title="Hardware", path="hardware", draw=hardware.page),
    Page(title="Alerts", path="alerts", draw=alerts.page),
    Page(title="Explore", path="explore", draw=explore.page),
    Page(title="Health", path="health", draw=health.page),
)
"""The first is what opens where the address names none."""
