"""The door of the collector's HTTP: every request has a token that allows it, if one is needed."""

import ipaddress
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from headway.collector.access import EVERYBODY, OPEN_PATHS, Access, TokenBook, needed_scope
from headway.collector.answers import error_answer
from headway.collector.tokens import TokenError

_BEARER = "bearer"
_RETRY_AFTER = 5


class TokenCheck:
    """Middleware that lets a request pass only with a token that allows it, if one is needed."""

    def __init__(self, app: ASGIApp, book: TokenBook) -> None:
        """Wrap `app`."""
        self._app = app
        self._book = book

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401, 403 or 503."""
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
            return _unless_from_a_web_page(headers)
        kind, _, secret = headers.get("authorization", "").partition(" ")
        try:
            access = self._book.access(secret.strip()) if kind.lower() == _BEARER else None
        except TokenError:
            return error_answer(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "The collector cannot read its file of tokens.",
                "See the collector's log, and send the request again.",
                {"Retry-After": str(_RETRY_AFTER)},
            )
        if access is None:
            return error_answer(
                HTTPStatus.UNAUTHORIZED,
                "The token is missing or wrong.",
                "Set HEADWAY_TOKEN.",
                {"WWW-Authenticate": "Bearer"},
            )
        needed = needed_scope(scope["method"], scope["path"])
        if needed is not None and needed not in access.scopes:
            return error_answer(
                HTTPStatus.FORBIDDEN,
                f"The token {access.name!r} has the scope {_words(access.scopes)}; "
                f"this needs {needed}.",
                f"Use another, or make one: headway token add NAME --scope {needed}.",
            )
        return access


def _unless_from_a_web_page(headers: Headers) -> Access | JSONResponse:
    """Let everybody on this machine in, except a page of elsewhere that a browser shows here.

    Such a page sends its origin, or, having had its own name pointed at this machine, that name.
    """
    host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
    refused = f"a web page of {headers['origin']!r}" if "origin" in headers else repr(host)
    if "origin" in headers or not _names_this_machine(host):
        return error_answer(
            HTTPStatus.FORBIDDEN,
            f"Without a token the collector answers programs on its own machine, not {refused}.",
            "Ask http://127.0.0.1, or make a token: headway token add NAME --scope read.",
        )
    return EVERYBODY


def _names_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _words(scopes: Iterable[str]) -> str:
    return " and ".join(sorted(scopes))
