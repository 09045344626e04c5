"""Who may talk to the collector: anybody on this machine, others with the token."""

import hmac
import ipaddress
import socket

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from headway.settings import CollectorSettings, SettingError

_OPEN_PATHS = ("/healthz", "/readyz")


def check_address(settings: CollectorSettings) -> None:
    """Refuse an address that others can reach while no token is set.

    Raises:
        SettingError: such an address, or a host name that nobody knows.
    """
    if settings.token is None and not _is_loopback(settings.host):
        raise SettingError(
            f"host {settings.host!r} can be reached from other machines and no token is set; "
            "set HEADWAY_COLLECTOR_TOKEN, and put a proxy that speaks TLS in front, "
            "or listen on 127.0.0.1"
        )


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host or None, 0, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise SettingError(f"cannot resolve host {host!r}: {error}") from error
    return all(ipaddress.ip_address(address[0]).is_loopback for *_, address in found)


class TokenCheck:
    """Middleware that lets a request pass only with the token, if one is set."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        """Wrap `app`."""
        self._app = app
        self._expected = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401."""
        if scope["type"] != "http" or scope["path"] in _OPEN_PATHS or self._allows(scope):
            await self._app(scope, receive, send)
            return
        response = JSONResponse(
            {"error": "The token is missing or wrong.", "next": "Set HEADWAY_TOKEN."},
            status_code=401,
            headers={"WWW-Authenticate": "Bearer"},
        )
        await response(scope, receive, send)

    def _allows(self, scope: Scope) -> bool:
        if self._expected is None:
            return True
        given = Headers(scope=scope).get("authorization", "").encode()
        return hmac.compare_digest(given, self._expected)
