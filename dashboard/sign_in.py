"""Who may see the pages: people whom an OpenID provider, or a proxy in front, vouches for."""

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import streamlit as st

from headway.dashboard import markup, way_back
from headway.settings import DashboardSettings, SettingError

_SHORTEST_SECRET = 32
_PERSON = "email"
_NEEDED = ("oidc_client_id", "oidc_client_secret", "oidc_redirect_url", "cookie_secret")


def secrets(settings: DashboardSettings) -> Mapping[str, Any]:
    """Return what Streamlit has to know about the provider; nothing where there is none.

    Raises:
        SettingError: a part is missing or cannot work.
    """
    if settings.oidc_metadata_url is None:
        if settings.allowed_users is not None and settings.user_header is None:
            raise SettingError(
                "allowed_users would let everybody in, since nobody says who is there; set "
                "oidc_metadata_url or user_header, too"
            )
        return {}
    for name in _NEEDED:
        if getattr(settings, name) is None:
            raise SettingError(
                f"{name} is missing, which sign-in needs; set HEADWAY_DASHBOARD_{name.upper()}"
            )
    redirect, secret = settings.oidc_redirect_url or "", settings.cookie_secret or ""
    if not redirect.endswith(way_back.CALLBACK):
        raise SettingError(
            f"oidc_redirect_url must be the dashboard's address with {way_back.CALLBACK}, got "
            f"{redirect!r}"
        )
    if len(secret) < _SHORTEST_SECRET:
        raise SettingError(
            f"cookie_secret must have at least {_SHORTEST_SECRET} characters, got {len(secret)}; "
            "make one with `openssl rand -hex 32`"
        )
    return {
        "auth": {
            "redirect_uri": redirect,
            "cookie_secret": secret,
            "client_id": settings.oidc_client_id,
            "client_secret": settings.oidc_client_secret,
            "server_metadata_url": settings.oidc_metadata_url,
        }
    }


def options(settings: DashboardSettings) -> Mapping[str, str]:
    """Return Streamlit's options for a proxy that says in a header who is there."""
    if settings.user_header is None:
        return {}
    return {"server.trustedUserHeaders": json.dumps({settings.user_header: _PERSON})}


def person() -> str | None:
    """Return who reads this page, as far as somebody vouches for it."""
    name = st.user.get(_PERSON) or st.user.get("preferred_username") or st.user.get("sub")
    return None if name is None else str(name)


def admitted(settings: DashboardSettings) -> bool:
    """Return whether the pages may be shown; if not, say in words what is missing."""
    if settings.oidc_metadata_url is None and settings.user_header is None:
        return True
    name = person()
    if settings.oidc_metadata_url is not None and not st.user.get("is_logged_in"):
        st.title("Sign in")
        st.write("Headway shows its pages to people who have signed in.")
        st.button("Sign in", on_click=st.login, type="primary")
        return False
    if name is None:
        st.title("Sign in")
        st.html(
            markup.notice(
                "The proxy in front of this page did not say who you are.",
                f"Open Headway through the proxy; it has to send the header "
                f"{settings.user_header}.",
            )
        )
        return False
    if not may_read(name, settings.allowed_users):
        st.title("Not allowed")
        st.html(
            markup.notice(
                f"{name} may not see these pages.",
                "Ask whoever runs this dashboard to add you to its allowed users.",
            )
        )
        _sign_out(settings)
        return False
    if settings.oidc_metadata_url is not None:
        with st.sidebar:
            st.caption(f"Signed in as {name}")
            _sign_out(settings)
    return True


def may_read(name: str, allowed: str | None) -> bool:
    """Return whether a person is among `ana@example.org, *@example.com`; case does not count.

    None leaves nobody out.
    """
    if allowed is None:
        return True
    patterns = [pattern.strip().lower() for pattern in allowed.split(",")]
    return any(pattern and fnmatchcase(name.lower(), pattern) for pattern in patterns)


def _sign_out(settings: DashboardSettings) -> None:
    if settings.oidc_metadata_url is not None:
        st.button("Sign out", on_click=st.logout)
