"""The pages in a real headless browser, served by the real command."""

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, expect

from browser_pages import chromium, dashboard, in_terminal, value
from fleet_collector import a_fleet
from headway.metrics import CATEGORIES
from headway.wording import ratio_range
from incident_collector import running
from page_watch import Watch
from sample_run import Sample, sample
from stub_collector import collector

pytestmark = pytest.mark.slow

LIVE = sample("llama-8b", seed=3, live=True)
ENDED = sample("demo")
GAPS = sample("tiny-gpt-ablation-warmup-2000-learning-rate-3e-4", seed=9, gap=9.0)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with collector([LIVE, ENDED, GAPS]) as served:
        yield served


@pytest.fixture(scope="module")
def address(endpoint: str) -> Iterator[str]:
    with dashboard(endpoint) as served:
        yield served


@pytest.mark.parametrize("one", [LIVE, ENDED, GAPS], ids=["live", "ended", "with a range"])
def test_the_run_page_shows_the_two_goodputs_of_the_terminal_report(
    browser: Browser, endpoint: str, address: str, one: Sample
) -> None:
    printed = in_terminal(endpoint, one.report["run"])
    page = browser.new_page()
    watch = Watch(page, address)

    page.goto(f"{address}/run?run={one.report['run']}")

    training = value(page, "Training goodput")
    infrastructure = value(page, "Infrastructure goodput")
    assert training == ratio_range(**one.report["training_goodput"])
    assert infrastructure == ratio_range(**one.report["infrastructure_goodput"])
    assert re.search(rf"Training goodput\s+{training}\s", printed)
    assert re.search(rf"Infrastructure goodput\s+{infrastructure}\s", printed)
    expect(page.locator(".hw-bars .hw-part").first).to_be_attached()
    expect(page.locator(".js-plotly-plot .barlayer").first).to_be_attached()
    assert watch.complaints == []
    assert watch.outside == []
    page.close()


def test_a_bar_of_the_ledger_explains_itself(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/run?run={ENDED.report['run']}")
    row = page.locator(".hw-bars li").filter(has_text=CATEGORIES["rolled_back"].title)
    definition = row.get_by_text(CATEGORIES["rolled_back"].description)
    expect(definition).to_be_hidden()

    row.hover()
    expect(definition).to_be_visible()
    page.mouse.move(0, 0)
    expect(definition).to_be_hidden()
    row.focus()
    expect(definition).to_be_visible()
    page.close()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("fleet") / "events.duckdb"
    with running(path, a_fleet()) as served, dashboard(served.address) as address:
        yield address


def test_one_click_leads_from_the_fleet_to_a_run_and_the_address_names_it(
    browser: Browser, fleet: str
) -> None:
    page = browser.new_page()
    watch = Watch(page, fleet)
    page.goto(fleet)

    page.get_by_role("link", name="new-1", exact=True).click()

    value(page, "Training goodput")
    assert page.url == f"{fleet}/run?run=new-1"
    assert watch.complaints == []
    page.close()


@pytest.mark.parametrize(
    "path", ["", "/recovery?window=all+time", "/hardware", "/hardware?node=n1"]
)
def test_a_page_of_the_fleet_fits_a_phone_and_complains_of_nothing(
    browser: Browser, fleet: str, path: str
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    watch = Watch(page, fleet)

    page.goto(fleet + path)

    expect(page.locator(".hw-lead")).to_be_visible()
    expect(page.locator(".hw-table").last).to_be_attached()
    main = page.get_by_test_id("stMain")
    assert main.evaluate("element => element.scrollWidth <= element.clientWidth")
    assert watch.complaints == []
    page.close()


def test_a_choice_on_the_fleet_page_is_in_its_address_and_comes_back_from_there(
    browser: Browser, fleet: str
) -> None:
    page = browser.new_page()
    page.goto(fleet)
    page.get_by_test_id("stButtonGroup").get_by_text("all time").click()
    expect(page.get_by_role("link", name="old", exact=True)).to_be_visible()
    again = browser.new_page()

    again.goto(page.url)

    expect(again.get_by_role("link", name="old", exact=True)).to_be_visible()
    page.close()
    again.close()


def test_a_page_fits_a_phone(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})

    page.goto(f"{address}/run")

    value(page, "Training goodput")
    main = page.get_by_test_id("stMain")
    assert main.evaluate("element => element.scrollWidth <= element.clientWidth")
    page.close()


def test_an_open_page_follows_a_run_to_its_end(browser: Browser) -> None:
    runs = [sample("demo", live=True)]
    with collector(runs) as endpoint, dashboard(endpoint) as address:
        page = browser.new_page()
        page.goto(f"{address}/run?run=demo")
        before = value(page, "Training goodput")
        assert before == ratio_range(**runs[0].report["training_goodput"])
        expect(page.get_by_text("Running.")).to_be_visible()

        runs[0] = sample("demo")

        expect(page.get_by_text("these numbers are final")).to_be_visible()
        # the page redraws piece by piece: the stat may follow its caption
        metric = page.get_by_test_id("stMetric").filter(has_text="Training goodput")
        after = ratio_range(**runs[0].report["training_goodput"])
        expect(metric.get_by_test_id("stMetricValue")).to_have_text(after)
        page.close()


def test_an_open_page_keeps_the_last_numbers_while_the_collector_is_away(browser: Browser) -> None:
    with ExitStack() as collecting, ExitStack() as serving:
        endpoint = collecting.enter_context(collector([LIVE]))
        address = serving.enter_context(dashboard(endpoint))
        page = browser.new_page()
        page.goto(f"{address}/run?run={LIVE.report['run']}")
        before = value(page, "Training goodput")

        collecting.close()

        expect(page.get_by_text("No collector answers at")).to_be_visible()
        assert value(page, "Training goodput") == before
        page.close()


def test_without_a_collector_the_page_waits_for_one_in_words(browser: Browser) -> None:
    with dashboard("http://127.0.0.1:9") as address:
        page = browser.new_page()
        page.goto(f"{address}/run?run=demo")

        expect(page.get_by_text("No collector answers at")).to_be_visible()
        expect(page.get_by_text("Traceback")).to_have_count(0)
        page.close()
