"""Sign-in with an OpenID provider and behind a proxy, in a real browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from browser_pages import chromium, dashboard_process
from openid_provider import CLIENT, SECRET, provider
from ports import free_port
from sample_run import sample
from stub_collector import collector

pytestmark = pytest.mark.slow

RUN = sample("demo")
PATIENCE = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with collector([RUN]) as served:
        yield served


def variables(provider_address: str, port: int) -> dict[str, str]:
    return {
        "HEADWAY_DASHBOARD_OIDC_METADATA_URL": (
            f"{provider_address}/.well-known/openid-configuration"
        ),
        "HEADWAY_DASHBOARD_OIDC_CLIENT_ID": CLIENT,
        "HEADWAY_DASHBOARD_OIDC_CLIENT_SECRET": SECRET,
        "HEADWAY_DASHBOARD_OIDC_REDIRECT_URL": f"http://127.0.0.1:{port}/oauth2callback",
        "HEADWAY_DASHBOARD_COOKIE_SECRET": "c" * 64,
        "HEADWAY_DASHBOARD_ALLOWED_USERS": "*@example.org",
    }


def test_who_signs_in_goes_on_to_the_page_of_the_link_and_who_is_not_allowed_reads_nothing(
    browser: Browser, endpoint: str
) -> None:
    port = free_port()
    with (
        provider("ana@example.org") as (one, address),
        dashboard_process(
            endpoint, "--port", str(port), variables=variables(address, port)
        ) as served,
    ):
        context = browser.new_context()
        page = context.new_page()
        wanted = f"{served.address}/run?run={RUN.report['run']}&view=Checkpoints"
        page.goto(wanted)
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible(timeout=PATIENCE)
        assert RUN.report["run"] not in page.content()

        page.get_by_role("button", name="Sign in").click()

        expect(page.get_by_test_id("stMetric").first).to_be_visible(timeout=PATIENCE)
        assert page.url == wanted
        assert "openid" in one.asked[0]
        context.close()

        one.person = "bo@elsewhere.net"
        context = browser.new_context()
        page = context.new_page()
        page.goto(served.address)
        page.get_by_role("button", name="Sign in").click(timeout=PATIENCE)
        expect(page.get_by_text("bo@elsewhere.net may not see these pages.")).to_be_visible(
            timeout=PATIENCE
        )
        assert RUN.report["run"] not in page.content()
        context.close()


def test_behind_a_proxy_its_header_says_who_reads_and_nothing_is_shown_without_it(
    browser: Browser, endpoint: str
) -> None:
    settings = {
        "HEADWAY_DASHBOARD_USER_HEADER": "X-Forwarded-Email",
        "HEADWAY_DASHBOARD_ALLOWED_USERS": "ana@example.org",
    }
    with dashboard_process(endpoint, variables=settings) as served:
        for header, words in (
            ({}, "The proxy in front of this page did not say who you are."),
            ({"X-Forwarded-Email": "bo@example.org"}, "bo@example.org may not see these pages."),
            ({"X-Forwarded-Email": "ana@example.org"}, "Where the time went"),
        ):
            context = browser.new_context(extra_http_headers=header)
            page = context.new_page()
            page.goto(f"{served.address}/run?run={RUN.report['run']}")
            expect(page.get_by_text(words).first).to_be_visible(timeout=PATIENCE)
            context.close()
