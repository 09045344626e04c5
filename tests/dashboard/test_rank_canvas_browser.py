"""The canvas of ranks in a real browser: a click leads to the incident, a drag enlarges."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser_pages import PATIENCE, chromium, dashboard
from headway.metrics import CATEGORIES
from incident_collector import Running, running
from timeline import at, timeline

pytestmark = pytest.mark.slow

GUTTER = 78
BROKEN = """
    0       attempt A launcher world=8 rank=0..7
    0-100   steps 1-100 rank=0..7
    60      finalized c60 60
    100     fault exception rank=3
    101     exit rank=3 code=1 by=itself
    130     launcher stop_workers
    131     exit signal=15 by=launcher rank=0..2
    131     exit signal=15 by=launcher rank=4..7
    140     attempt B launcher world=8 rank=0..7
    150     resumed 60 from=c60 rank=0..7
    150-400 steps 61-310 rank=0..7
    400     run_ended completed
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("canvas") / "events.duckdb"
    with running(path, timeline(BROKEN), at(410)) as found:
        yield found


@pytest.fixture(scope="module")
def address(collector: Running) -> Iterator[str]:
    with dashboard(collector.address) as served:
        yield served


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    opened = browser.new_page(device_scale_factor=2, viewport={"width": 1200, "height": 900})
    opened.goto(f"{address}/run?run=run&view=Ranks")
    yield opened
    opened.close()


def canvas_of(page: Page) -> Locator:
    """Return the canvas once it is drawn."""
    found = page.locator("canvas")
    expect(found).to_be_visible()
    page.wait_for_function(
        "performance.getEntriesByName('headway-ranks').length > 0", timeout=PATIENCE
    )
    found.scroll_into_view_if_needed()
    return found


def place(canvas: Locator, share: float, row: int = 4) -> dict[str, float]:
    """Return where a share of the shown time lies on the canvas."""
    box = canvas.bounding_box()
    assert box is not None
    return {"x": GUTTER + share * (box["width"] - GUTTER), "y": 12 + row * 18 + 9}


def incident(collector: Running) -> dict[str, Any]:
    (found,) = collector.client.report("run")["incidents"]
    return dict(found)


def is_open(page: Page, found: dict[str, Any]) -> None:
    there = re.compile(rf"/incident\?incident={re.escape(quote(found['incident'], safe=''))}$")
    page.wait_for_url(there, wait_until="commit", timeout=PATIENCE)


def test_a_click_on_a_marked_incident_opens_it(page: Page, collector: Running) -> None:
    canvas, one = canvas_of(page), incident(collector)

    canvas.hover(position=place(canvas, 100 / 400))
    expect(page.get_by_text("Click to open it.")).to_be_visible()
    canvas.click(position=place(canvas, 100 / 400))

    is_open(page, one)


def test_the_keyboard_chooses_an_incident_and_opens_it(page: Page, collector: Running) -> None:
    canvas, one = canvas_of(page), incident(collector)

    canvas.focus()
    canvas.press("ArrowRight")
    expect(page.get_by_text("Incident 1: exception, rank 3 suspected.")).to_be_visible()
    canvas.press("Enter")

    is_open(page, one)


def test_a_point_says_which_rank_did_what_when(page: Page) -> None:
    canvas = canvas_of(page)

    canvas.hover(position=place(canvas, 0.8, row=2))
    tip = page.locator(".tip")
    expect(tip).to_contain_text("Rank 2 on node-a")
    expect(tip).to_contain_text(CATEGORIES["productive"].title)
    canvas.hover(position=place(canvas, 115 / 400, row=3))
    expect(tip).to_contain_text("Left its attempt")


def test_it_is_drawn_in_the_colours_of_the_ledger_at_the_screens_density(page: Page) -> None:
    canvas = canvas_of(page)

    wide, colour = canvas.evaluate(
        """(canvas) => {
          const pixel = canvas.getContext("2d").getImageData(canvas.width * 0.8, 42, 1, 1).data;
          const hex = [...pixel.slice(0, 3)].map((one) => one.toString(16).padStart(2, "0"));
          return [canvas.width / canvas.clientWidth, "#" + hex.join("").toUpperCase()];
        }"""
    )

    assert wide == pytest.approx(2, abs=0.01)
    assert colour == CATEGORIES["productive"].colour


def test_a_drag_enlarges_a_stretch_that_the_address_holds(page: Page, address: str) -> None:
    canvas = canvas_of(page)
    box = canvas.bounding_box()
    assert box is not None

    first, last = place(canvas, 0.2), place(canvas, 0.4)
    page.mouse.move(box["x"] + first["x"], box["y"] + first["y"])
    page.mouse.down()
    page.mouse.move(box["x"] + last["x"], box["y"] + last["y"], steps=4)
    page.mouse.up()

    whole = page.get_by_role("button", name="Show the whole run")
    expect(whole).to_be_visible()
    found = re.search(r"from=(\d+)&to=(\d+)", page.url)
    assert found is not None
    begin, end = (int(one) for one in found.groups())
    assert begin == pytest.approx(at(80) / 10**6, abs=2_000)
    assert end == pytest.approx(at(160) / 10**6, abs=2_000)
    whole.click()
    expect(whole).to_be_hidden()
    assert "from=" not in page.url


def test_a_table_says_the_same_to_who_cannot_see_it(page: Page) -> None:
    canvas = canvas_of(page)
    assert "8 rows of ranks over time with 1 incident" in (canvas.get_attribute("aria-label") or "")

    page.get_by_text("As a table").click()

    expect(page.get_by_role("cell", name="Rank 3 on node-a")).to_be_visible()
    expect(page.get_by_role("link", name="Incident 1")).to_be_visible()
