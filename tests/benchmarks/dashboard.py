"""How soon pages are there and what they take: `scripts/bench dashboard [--json]`; see README.md.

A real collector with 1,000 runs and 10 million step rows, of which 20 runs live, the real dashboard
and a headless Chromium. Bars: with everything warm the first meaningful chart of each page within
1.5 s in 95 of 100 loads, 500 MB of memory of the dashboard with ten open pages, 4 MB to the browser
for any page, also where a statement gives every step row.
"""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any
from urllib.parse import urlencode

import httpx
from playwright.sync_api import Browser, Page

from benchmarks.drawing import rank_canvas
from benchmarks.drawing.plain_browser import Load, PlainBrowser
from benchmarks.queries import build, going_on, resident, wait_for_ledgers
from benchmarks.querying.fleet import Fleet
from browser_pages import chromium, dashboard_process, executable
from collector_process import COMMAND, CollectorProcess

READY_BAR_S = 1.5
MEMORY_BAR_MB = 500.0
SENT_BAR_MB = 4.0
_OPEN_PAGES = 10
_WATCHED_S = 20.0
_PATIENCE_MS = 120_000
_BARS = ".hw-bars"
_DAYS = ".hw-days"
_TABLE = ".hw-table"
_SIDES = '[aria-label="Comparison"]'
_NUMBER = '[data-testid="stMetricValue"]'
_GRID = '[data-testid="stDataFrame"]'


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A page, and what has to be on it before it tells something."""

    name: str
    path: str
    ready: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How one page came: times in s, what the server sent for one load in MB."""

    page: str
    first_s: float
    p50_s: float
    p95_s: float
    sent_mb: float
    met: bool


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench dashboard", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--runs", type=int, default=1_000, help="runs; default: 1000")
    parser.add_argument("--steps", type=int, default=10_000, help="steps of a run; default: 10000")
    parser.add_argument("--rounds", type=int, default=20, help="warm loads of a page; default: 20")
    options = parser.parse_args()
    fleet = Fleet(
        runs=options.runs,
        steps=options.steps,
        record=20,
        live=min(20, options.runs),
        nodes=100,
        end=time.time_ns(),
    )
    folder = Path(tempfile.mkdtemp(prefix="headway-dashboard-"))
    try:
        found = _measured(fleet, folder, options.rounds)
    finally:
        shutil.rmtree(folder)
    print(json.dumps(found) if options.json else "\n".join(_table(found)))


def _measured(fleet: Fleet, folder: Path, rounds: int) -> dict[str, Any]:
    load, path = os.getloadavg(), folder / "events.duckdb"
    built = build(fleet, path)
    with (
        _collector(path) as collector,
        httpx.Client(base_url=collector, timeout=600) as http,
        dashboard_process(collector) as served,
        chromium() as browser,
    ):
        wait_for_ledgers(http)
        places = _places(fleet, http)
        begun = resident(served.process_id)
        with going_on(fleet, http):
            with PlainBrowser(executable(), folder / "profile") as plain:
                rows = [_row(plain, served.address, place, rounds) for place in places]
            memory = _with_open_pages(browser, served.address, places, served.process_id)
        canvas = rank_canvas.figures(browser)
    met = all(row.met for row in rows) and memory <= MEMORY_BAR_MB
    return {
        "bars": {"ready_s": READY_BAR_S, "memory_mb": MEMORY_BAR_MB, "sent_mb": SENT_BAR_MB},
        "rows": [asdict(row) for row in rows],
        "memory_mb": {"begin": begun, f"{_OPEN_PAGES} pages": memory},
        "canvas": canvas,
        "met": met,
        "fleet": asdict(fleet),
        "stored": built,
        "machine": {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "load_before": load,
            "load_after": os.getloadavg(),
        },
    }


@contextmanager
def _collector(path: Path) -> Iterator[str]:
    variables = {"HEADWAY_COLLECTOR_COMMIT_INTERVAL": "0.2"}
    process = CollectorProcess(path, variables=variables, program=COMMAND)
    try:
        yield process.address
    finally:
        process.kill()


def _places(fleet: Fleet, http: httpx.Client) -> list[Place]:
    """Return every page, each in the state in which it has most to show."""
    incident = http.get("/api/v1/incidents", params={"limit": 1}).json()["incidents"][0]
    live, ended = fleet.rank(fleet.runs - 1).run, fleet.rank(0).run
    all_steps = {"question": "own", "sql": "FROM v_steps"}
    compared = {"run": live, "view": "Compare", "other": ended}
    return [
        Place(name="fleet", path="/", ready=_BARS),
        Place(name="run, live", path=_address("run", run=live), ready=_BARS),
        Place(name="run, ended", path=_address("run", run=ended), ready=_BARS),
        Place(name="run, compared", path=_address("run", **compared), ready=_SIDES),
        Place(name="incidents", path="/incidents", ready=_TABLE),
        Place(
            name="incident",
            path=_address("incident", incident=incident["incident"]),
            ready=_TABLE,
        ),
        Place(name="recovery", path="/recovery", ready=_BARS),
        Place(name="hardware", path="/hardware", ready=_DAYS),
        Place(name="alerts", path="/alerts", ready=_NUMBER),
        Place(name="health", path="/health", ready=_TABLE),
        Place(name="explore, every step row", path=_address("explore", **all_steps), ready=_GRID),
    ]


def _address(page: str, **query: str) -> str:
    return f"/{page}?{urlencode(query)}"


def _row(browser: PlainBrowser, address: str, place: Place, rounds: int) -> Row:
    def load() -> Load:
        return browser.load(address + place.path, place.ready, _PATIENCE_MS / 1e3)

    first = load()
    load()  # what V8 has compiled is kept from the second time on
    loads = [load() for _ in range(rounds)]
    times = sorted(one.seconds for one in loads)
    sent = max(one.received for one in loads) / 1e6
    p95 = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    print(f"{place.name}: {p95:.2f} s, {sent:.2f} MB", file=sys.stderr)
    return Row(
        page=place.name,
        first_s=first.seconds,
        p50_s=times[len(times) // 2],
        p95_s=p95,
        sent_mb=sent,
        met=p95 <= READY_BAR_S and sent <= SENT_BAR_MB,
    )


def _wait(page: Page, place: Place) -> None:
    page.locator(place.ready).first.wait_for(state="attached", timeout=_PATIENCE_MS)


def _with_open_pages(browser: Browser, address: str, places: list[Place], process: int) -> float:
    """Return the most memory of the dashboard in MB while ten pages are open and refresh."""
    contexts = [browser.new_context() for _ in range(_OPEN_PAGES)]
    most = 0.0
    try:
        for number, context in enumerate(contexts):
            place = places[number % len(places)]
            page = context.new_page()
            page.goto(address + place.path, wait_until="commit", timeout=_PATIENCE_MS)
            _wait(page, place)
            most = max(most, resident(process))
        until = time.monotonic() + _WATCHED_S
        while time.monotonic() < until:
            contexts[0].pages[0].wait_for_timeout(500)
            most = max(most, resident(process))
    finally:
        for context in contexts:
            context.close()
    return most


def _table(found: Mapping[str, Any]) -> Iterator[str]:
    fleet, memory = found["fleet"], found["memory_mb"]
    yield f"{fleet['runs']:,} runs, {fleet['runs'] * fleet['steps']:,} step rows"
    yield f"{'page':<26}{'first s':>9}{'p50 s':>8}{'p95 s':>8}{'sent MB':>9}  met"
    for row in found["rows"]:
        yield (
            f"{row['page']:<26}{row['first_s']:>9.2f}{row['p50_s']:>8.2f}{row['p95_s']:>8.2f}"
            f"{row['sent_mb']:>9.2f}  {'yes' if row['met'] else 'NO'}"
        )
    yield "memory of the dashboard: " + ", ".join(f"{k} {v:.0f} MB" for k, v in memory.items())
    yield f"canvas: {found['canvas']}"


if __name__ == "__main__":
    main()
