"""The door of the collector's HTTP: every request has a token that allows it, if one is needed."""

import ipaddress
from collections import Counter
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from headway.collector.access import EVERYBODY, OPEN_PATHS, Access, TokenBook, needed_scope
from headway.collector.answers import error_answer
from headway.collector.tokens import TokenError

NO_TOKEN, WRONG_TOKEN, SCOPE, WEB_PAGE = "no_token", "wrong_token", "scope", "web_page"
REASONS = (NO_TOKEN, WRONG_TOKEN, SCOPE, WEB_PAGE)
"""Why a request was turned away: 401 for the first two, 403 for the others."""
_BEARER = "bearer"
_RETRY_AFTER = 5
_POLICY_VIOLATION = 1008


class TokenCheck:
    """Middleware that lets a request pass only with a token that allows it, if one is needed."""

    def __init__(self, app: ASGIApp, book: TokenBook, refused: Counter[str] | None = None) -> None:
        """Wrap `app`; counts in `refused`, by reason, whom it turns away."""
        self._app = app
        self._book = book
        self._refused: Counter[str] = Counter() if refused is None else refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401, 403 or 503."""
        if scope["type"] == "websocket":  # the collector has none, so nothing checks their senders
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            return
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        found = self._access(scope)
        if isinstance(found, Access):
            scope.setdefault("state", {})["access"] = found
            await self._app(scope, receive, send)
            return
        await found(scope, receive, send)

    def _access(self, scope: Scope) -> Access | JSONResponse:
        headers = Headers(scope=scope)
        if not self._book.needs_token:
            return self._unless_from_a_web_page(headers)
        secret = _secret(headers)
        try:
            access = None if secret is None else self._book.access(secret)
        except TokenError:
            return error_answer(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "The collector cannot read its file of tokens.",
                "See the collector's log, and send the request again.",
                {"Retry-After": str(_RETRY_AFTER)},
            )
        if access is None:
            self._refused[NO_TOKEN if secret is None else WRONG_TOKEN] += 1
            return error_answer(
                HTTPStatus.UNAUTHORIZED,
                "The token is missing or wrong.",
                "Set HEADWAY_TOKEN.",
                {"WWW-Authenticate": "Bearer"},
            )
        needed = needed_scope(scope["method"], scope["path"])
        if needed is not None and needed not in access.scopes:
            self._refused[SCOPE] += 1
            return error_answer(
                HTTPStatus.FORBIDDEN,
                f"The token {access.name!r} has the scope {_words(access.scopes)}; "
                f"this needs {needed}.",
                f"Use another, or make one: headway token add NAME --scope {needed}.",
            )
        return access

    def _unless_from_a_web_page(self, headers: Headers) -> Access | JSONResponse:
        """Let everybody on this machine in, except a page of elsewhere that a browser shows here.

        Such a page sends its origin, or, having had its own name pointed at this machine, that
        name.
        """
        host = _host(headers)
        if "origin" not in headers and _names_this_machine(host):
            return EVERYBODY
        self._refused[WEB_PAGE] += 1
        who = f"a web page of {headers['origin']!r}" if "origin" in headers else repr(host)
        return error_answer(
            HTTPStatus.FORBIDDEN,
            f"Without a token the collector answers programs on its own machine, not {who}.",
            "Ask http://127.0.0.1, or make a token: headway token add NAME --scope read.",
        )


def _secret(headers: Headers) -> str | None:
    """Return the token of a request; None where there is none, or more than one to choose from."""
    match headers.getlist("authorization"):
        case [said]:
            kind, _, secret = said.partition(" ")
            return (secret.strip() or None) if kind.lower() == _BEARER else None
    return None


def _host(headers: Headers) -> str:
    """Return the host that a request names, without its port; as it stands where it is none."""
    said = headers.get("host", "")
    try:
        return urlsplit(f"//{said}").hostname or ""
    except ValueError:
        return said


def _names_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _words(scopes: Iterable[str]) -> str:
    return " and ".join(sorted(scopes))
