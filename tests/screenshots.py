"""Saves every page of the dashboard on the seeded fleet as pictures: light, dark and on a phone."""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import httpx
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as TookTooLong

from browser_pages import chromium, dashboard_process
from seeded_fleet import SMALL, WHOLE, seeded_collector

_LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1440, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1440, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
_TALLEST = 12_000
_PATIENCE = 120_000
"""Milliseconds until a page begins to come on a busy machine."""
_HEIGHT = "() => (document.querySelector('[data-testid=stMain]') ?? document.body).scrollHeight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """A page in one state, by the name of its picture."""

    name: str
    path: str


def shots(endpoint: str) -> Iterator[Shot]:
    """Return every page with something to see on it."""
    with httpx.Client(base_url=f"{endpoint}/api/v1", trust_env=False, timeout=60) as client:
        runs = client.get("/runs", params={"limit": 1000}).json()["runs"]
        incidents = client.get("/incidents", params={"limit": 1000}).json()["incidents"]
        nodes = client.get("/nodes").raise_for_status().json()["nodes"]
    live = [run for run in runs if run["state"] == "running"]
    ended = max((run for run in runs if run not in live), key=lambda run: run["attempts"])
    yield Shot(name="fleet", path="/")
    yield Shot(name="run-live", path=_address("run", run=live[0]["run"]))
    yield Shot(name="run-ended", path=_address("run", run=ended["run"]))
    for view in ("Ranks", "Checkpoints", "Incidents", "Settings"):
        address = _address("run", run=ended["run"], view=view)
        yield Shot(name=f"run-{view.lower()}", path=address)
    compared = _address("run", run=ended["run"], view="Compare", other=live[0]["run"])
    yield Shot(name="run-compare", path=compared)
    yield Shot(name="run-missing", path="/run/nope")
    yield Shot(name="incidents", path="/incidents")
    yield Shot(name="incidents-list", path=_address("incidents", view="One by one"))
    for cause in ("gpu_fault", "exception"):
        one = next((found for found in incidents if found["cause"] == cause), None)
        if one is not None:
            name = f"incident-{cause.replace('_', '-')}"
            yield Shot(name=name, path=_address("incident", incident=one["incident"]))
    yield Shot(name="recovery", path="/recovery")
    yield Shot(name="hardware", path="/hardware")
    yield Shot(name="hardware-node", path=_address("hardware", node=nodes[0]["node"]))
    yield Shot(name="alerts", path="/alerts")
    yield Shot(name="explore", path="/explore")
    yield Shot(name="explore-weeks", path=_address("explore", question="week-against-week"))
    own = "SELECT layer, cause, incident FROM v_incidents"
    yield Shot(name="explore-own", path=_address("explore", question="own", sql=own))
    yield Shot(name="explore-search", path=_address("explore", find="learning rate"))
    yield Shot(name="health", path="/health")


def _address(page: str, **parameters: str) -> str:
    return f"/{page}?{urlencode(parameters)}"


def main(arguments: list[str]) -> int:
    """Start everything, save the pictures, end everything."""
    parser = argparse.ArgumentParser(prog="scripts/screenshots", description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR", help="Folder for the pictures.")
    parser.add_argument(
        "--page", metavar="NAME", help="Only pictures whose name begins so, such as fleet."
    )
    parser.add_argument("--look", choices=tuple(_LOOKS), help="Only this look.")
    parser.add_argument("--small", action="store_true", help="A fleet of 6 runs; sooner ready.")
    options = parser.parse_args(arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with (
        seeded_collector(SMALL if options.small else WHOLE) as endpoint,
        dashboard_process(endpoint) as served,
        chromium() as browser,
    ):
        print(f"ready after {time.monotonic() - began:.0f} s", file=sys.stderr)
        wanted = [one for one in shots(endpoint) if one.name.startswith(options.page or "")]
        for look in [options.look] if options.look else list(_LOOKS):
            for one in wanted:
                file = options.directory / f"{one.name}-{look}.png"
                save(browser, served.address + one.path, look, file)
                print(file)
    return 0


def save(browser: Browser, address: str, look: str, file: Path) -> None:
    """Save a page from top to bottom once nothing on it changes."""
    context = browser.new_context(**_LOOKS[look], timezone_id="Europe/Berlin", locale="en-GB")
    page = context.new_page()
    page.goto(address, timeout=_PATIENCE)
    settle(page)
    width = page.viewport_size["width"] if page.viewport_size else 1440
    # The page scrolls within itself: the window has to be as tall as what is in it.
    height = page.evaluate(_HEIGHT) + 80
    page.set_viewport_size({"width": width, "height": min(max(height, 600), _TALLEST)})
    settle(page)
    page.screenshot(path=file)
    context.close()


def settle(page: Page) -> None:
    """Wait until the page has been drawn and stays as it is for a moment."""
    try:
        page.locator("h1").first.wait_for(timeout=30_000)
        page.wait_for_function(
            "() => !document.querySelector('[data-testid=stSkeleton],[data-stale=true],.hw-wait')"
            " && !document.querySelector('[data-testid=stStatusWidget]')"
            " && [...document.querySelectorAll('[data-testid=stPlotlyChart]')].every("
            " chart => chart.querySelector('.main-svg'))",
            timeout=30_000,
        )
    except TookTooLong:
        print(f"{page.url}: still not drawn after 30 s", file=sys.stderr)
    heights = [0, 1, 2]
    deadline = time.monotonic() + 30
    while len(set(heights[-3:])) > 1 and time.monotonic() < deadline:
        page.wait_for_timeout(500)
        heights.append(page.evaluate(_HEIGHT))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
