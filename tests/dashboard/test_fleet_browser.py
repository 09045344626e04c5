"""All pages on the made-up fleet, as a reader uses them in a real browser."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from arrivals import wait_until
from browser_pages import chromium, dashboard_process
from headway.dashboard.pages import PAGES
from page_watch import Watch
from screenshots import settle, shots
from seeded_fleet import SMALL, seeded_collector

pytestmark = pytest.mark.slow

PATIENCE = 60_000
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with seeded_collector(SMALL) as served:
        yield served


@pytest.fixture(scope="module")
def address(endpoint: str) -> Iterator[str]:
    # at the pace of readers: a page that looks again each second never rests on a busy machine
    with dashboard_process(endpoint) as served:
        yield served.address


def reading(browser: Browser, **options: Any) -> BrowserContext:
    """Open a window of a reader who waits for a busy machine."""
    context = browser.new_context(**options)
    context.set_default_navigation_timeout(2 * PATIENCE)
    return context


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = reading(browser, viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


def test_the_menu_leads_to_every_page_without_a_complaint_or_a_request_elsewhere(
    page: Page, address: str
) -> None:
    watch = Watch(page, address)
    page.goto(address)
    settle(page)

    titles = [one.title for one in PAGES if one.listed]
    for title in [*titles[1:], titles[0]]:
        page.get_by_role("link", name=title, exact=True).click()
        expect(page.get_by_role("heading", level=1, name=title)).to_be_visible(timeout=PATIENCE)
        settle(page)
        assert "could not be drawn" not in page.content()

    assert watch.complaints == []
    assert watch.outside == []


def test_three_clicks_lead_from_the_fleet_to_the_first_fault(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("radio", name=re.compile("all time", re.IGNORECASE)).click(timeout=PATIENCE)
    page.locator('a[href^="incident?incident="]').first.click(timeout=PATIENCE)

    expect(page.get_by_role("heading", level=1, name="Incident")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("first fault").first).to_be_visible(timeout=PATIENCE)


def test_what_is_chosen_stands_in_the_address_and_the_address_brings_it_back(
    browser: Browser, page: Page, address: str
) -> None:
    page.goto(address)
    page.get_by_role("radio", name="24 h").click(timeout=PATIENCE)
    page.wait_for_url(re.compile(r"\?.*24"), timeout=PATIENCE)
    link = page.url

    context = reading(browser)
    other = context.new_page()
    other.goto(link)

    expect(other.get_by_role("radio", name="24 h")).to_be_checked(timeout=PATIENCE)
    settle(other)
    assert other.url == link
    context.close()


@pytest.mark.parametrize(
    ("path", "chosen"),
    [
        ("fleet?window=30+days&by=month", ("30 days", "month")),
        ("incidents?view=One+by+one&state=Closed&window=all+time", ("One by one", "Closed")),
        ("recovery?window=all+time&group=layer", ("all time", "layer")),
        ("hardware?window=24+h", ("24 h",)),
        ("run?run=RUN&view=Ranks&rows=node", ("node",)),
    ],
)
def test_a_link_brings_back_what_was_chosen_on_each_page(
    page: Page, address: str, endpoint: str, path: str, chosen: tuple[str, ...]
) -> None:
    runs = httpx.get(f"{endpoint}/api/v1/runs", trust_env=False).json()["runs"]
    link = f"{address}/{path.replace('RUN', runs[0]['run'])}"

    page.goto(link)

    for name in chosen:
        expect(page.get_by_role("radio", name=name, exact=True)).to_be_checked(timeout=PATIENCE)
    settle(page)
    assert parse_qs(urlsplit(page.url).query) == parse_qs(urlsplit(link).query)


def test_the_alerts_page_shows_what_fires_what_is_pending_and_what_is_quiet(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/alerts")

    for name in ("Firing", "Pending", "Hidden", "Silences", "Delivery log"):
        table = page.get_by_role("region", name=name, exact=True)
        expect(table.locator("tbody tr").first).to_be_visible(timeout=PATIENCE)
    firing = page.get_by_role("region", name="Firing", exact=True)
    expect(firing.get_by_text("kofi has it").first).to_be_visible(timeout=PATIENCE)


def test_a_page_of_a_live_run_goes_on_by_itself(page: Page, address: str, endpoint: str) -> None:
    runs = httpx.get(f"{endpoint}/api/v1/runs?state=running", trust_env=False).json()["runs"]
    page.goto(f"{address}/run/{runs[0]['run']}")
    age = page.get_by_text(re.compile("Data as of"))
    expect(age).to_be_visible(timeout=PATIENCE)
    before = age.inner_text()

    expect(age).not_to_have_text(before, timeout=PATIENCE)


def test_a_run_that_is_not_there_is_said_so_with_the_next_step(page: Page, address: str) -> None:
    page.goto(f"{address}/run/nope")

    expect(page.get_by_text("nope").first).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("Open the Fleet page")).to_be_visible(timeout=PATIENCE)
    assert page.url == f"{address}/run?run=nope"


def test_an_answer_is_downloaded_as_it_is_shown(
    page: Page, endpoint: str, address: str, tmp_path: Path
) -> None:
    # The views are written within a minute of the collector's start.
    def is_written() -> bool:
        asked = {"sql": "SELECT run_name FROM v_runs"}
        answer = httpx.post(f"{endpoint}/api/v1/sql", json=asked, timeout=60, trust_env=False)
        return len(answer.json()["rows"]) >= SMALL.runs - SMALL.live

    wait_until(is_written, 180)
    page.goto(f"{address}/explore?question=own&sql=SELECT%20run_name%20FROM%20v_runs")
    button = page.get_by_role("button", name="Download CSV", exact=True)
    with page.expect_download(timeout=PATIENCE) as waiting:
        button.click(timeout=PATIENCE)
    file = tmp_path / "answer.csv"
    waiting.value.save_as(file)

    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8-sig"))))
    assert SMALL.runs - SMALL.live <= len(rows) <= SMALL.runs
    assert {"llama-70b-pretrain"} <= {row["run_name"] for row in rows}


def test_times_are_those_of_the_readers_zone(browser: Browser, address: str) -> None:
    context = reading(browser, timezone_id="Asia/Tokyo", locale="ja-JP")
    page = context.new_page()
    page.goto(address)

    expect(page.get_by_text(re.compile(r"\d JST")).first).to_be_visible(timeout=PATIENCE)
    context.close()


def test_the_keyboard_reaches_the_menu_and_the_meaning_of_numbers(page: Page, address: str) -> None:
    page.goto(address)
    settle(page)
    reached = []
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent"))
        if reached[-1].startswith("What these numbers mean"):
            break

    assert {"Fleet", "Incidents", "Health"} <= set(reached)
    page.keyboard.press("Enter")
    expect(page.get_by_text("GET /api/v1/fleet").first).to_be_visible(timeout=PATIENCE)


def test_every_page_fits_a_phone(browser: Browser, address: str, endpoint: str) -> None:
    context = reading(browser, viewport=PHONE)
    page = context.new_page()
    wide = []
    for shot in shots(endpoint):
        page.goto(address + shot.path)
        settle(page)
        main = page.get_by_test_id("stMain")
        if not main.evaluate("element => element.scrollWidth <= element.clientWidth"):
            wide.append(shot.name)
    context.close()

    assert wide == []


@pytest.mark.parametrize("look", ["light", "dark"])
def test_no_page_has_a_serious_fault_of_accessibility(
    browser: Browser, address: str, endpoint: str, look: str
) -> None:
    context = reading(browser, color_scheme=look, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    found = []
    for shot in shots(endpoint):
        page.goto(address + shot.path)
        settle(page)
        for fault in Axe().run(page).response["violations"]:
            if fault["impact"] in ("serious", "critical"):
                node = fault["nodes"][0]
                found.append((shot.name, fault["id"], len(fault["nodes"]), node["html"][:200]))
    context.close()

    assert found == []
