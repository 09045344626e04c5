"""Who may read, and which settings of sign-in cannot work."""

from dataclasses import replace

import pytest

from headway.dashboard import sign_in
from headway.settings import DashboardSettings, SettingError

WHOLE = DashboardSettings(
    oidc_metadata_url="https://id.example/.well-known/openid-configuration",
    oidc_client_id="headway",
    oidc_client_secret="s",  # noqa: S106  # no secret
    oidc_redirect_url="https://headway.example/oauth2callback",
    cookie_secret="c" * 32,
)


def test_without_a_provider_there_is_nothing_to_tell() -> None:
    assert sign_in.secrets(DashboardSettings()) == {}
    assert sign_in.options(DashboardSettings()) == {}


def test_the_provider_is_told_as_streamlit_wants_it() -> None:
    assert sign_in.secrets(WHOLE)["auth"] == {
        "redirect_uri": "https://headway.example/oauth2callback",
        "cookie_secret": "c" * 32,
        "client_id": "headway",
        "client_secret": "s",
        "server_metadata_url": "https://id.example/.well-known/openid-configuration",
    }


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"oidc_client_id": None}, "oidc_client_id is missing.*HEADWAY_DASHBOARD_OIDC_CLIENT_ID"),
        ({"cookie_secret": None}, "cookie_secret is missing"),
        ({"cookie_secret": "short"}, "at least 32 characters, got 5.*openssl rand"),
        ({"oidc_redirect_url": "https://headway.example/"}, "with /oauth2callback, got"),
    ],
)
def test_settings_that_cannot_work_are_refused(changed: dict[str, str], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        sign_in.secrets(replace(WHOLE, **changed))


def test_a_list_of_people_without_anybody_who_tells_them_apart_is_refused() -> None:
    with pytest.raises(SettingError, match="would let everybody in"):
        sign_in.secrets(DashboardSettings(allowed_users="ana@example.org"))

    allowed = DashboardSettings(allowed_users="ana@example.org", user_header="X-Forwarded-Email")
    assert sign_in.secrets(allowed) == {}


def test_a_trusted_header_becomes_the_person() -> None:
    settings = DashboardSettings(user_header="X-Forwarded-Email")

    assert sign_in.options(settings) == {
        "server.trustedUserHeaders": '{"X-Forwarded-Email": "email"}'
    }


@pytest.mark.parametrize(
    ("name", "allowed", "may"),
    [
        ("ana@example.org", None, True),
        ("ana@example.org", "ana@example.org", True),
        ("Ana@Example.org", "bo@example.org, *@EXAMPLE.org", True),
        ("ana@example.org.evil.net", "*@example.org", False),
        ("ana@example.org", "", False),
        ("ana@example.org", ",", False),
    ],
)
def test_only_allowed_people_may_read(name: str, allowed: str | None, may: bool) -> None:
    assert sign_in.may_read(name, allowed) is may
