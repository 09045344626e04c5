"""Leads people who had to sign in to the page that they wanted, by a cookie of some minutes.

Streamlit leads everybody to the start page after a sign-in, so that a link in an alert would end
on Fleet. The cookie holds a page and its parameters, and is believed only as far as it names one.
"""

from collections.abc import Callable, Collection, Mapping
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CALLBACK = "/oauth2callback"
"""Where the provider sends people back to."""
_COOKIE = "headway_wanted"
_RULES = "Path=/; HttpOnly; SameSite=Lax"
_SECONDS = 900
_LONGEST = 3_000
"""Characters; browsers keep 4,096 in a cookie."""
FORGOTTEN = f"{_COOKIE}=; Max-Age=0; {_RULES}"


class WayBack:
    """Remembers each page that is opened, and changes where the end of a sign-in leads."""

    def __init__(self, app: ASGIApp, titles: Callable[[], Mapping[str, str]]) -> None:
        """Serve `app`; `titles` gives those of the pages by path, asked when a request is there."""
        self._app = app
        self._titles = titles

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        pages, path = self._titles(), scope["path"]
        back = wanted(Headers(scope=scope).get("cookie", ""), pages) if path == CALLBACK else None
        page = path.strip("/")
        opened = page in pages or not page

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if opened and message["status"] == 200:
                    query = scope["query_string"].decode("latin-1")
                    headers.append("set-cookie", kept(page, query))
                elif back is not None and 300 <= message["status"] < 400:
                    # relative, so that it holds behind a proxy that adds a prefix
                    headers["location"] = back
                    headers.append("set-cookie", FORGOTTEN)
            await send(message)

        await self._app(scope, receive, answered)


def kept(page: str, query: str) -> str:
    """Return the Set-Cookie header that remembers a page; the start page needs no memory."""
    value = quote(f"{page}?{query}" if query else page, safe="")
    if not page or len(value) > _LONGEST:
        return FORGOTTEN
    return f"{_COOKIE}={value}; Max-Age={_SECONDS}; {_RULES}"


def wanted(cookies: str, pages: Collection[str]) -> str | None:
    """Return the address, relative to the start page, that a Cookie header asks to go back to.

    None where it names none of the `pages`, so that nobody can be led elsewhere.
    """
    # read as browsers write it: by the standard, one odd cookie beside it would hide it
    page, _, query = unquote(cookie_parser(cookies).get(_COOKIE, "")).partition("?")
    if page not in pages:
        return None
    parameters = urlencode(parse_qsl(query, keep_blank_values=True), quote_via=quote)
    return f"{page}?{parameters}" if parameters else page
