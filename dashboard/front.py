"""What stands before Streamlit: addresses in words, and a browser that asks nobody else.

Streamlit answers every unknown address with its start page, whose relative links then fail, and
lets the browser guess where the server is. Here a page's address is told to the browser, one
that names a run is led to that run's page, and any other gets a page that says so. A page names
beforehand what draws it, which a browser else would load and start only once it is drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; frame-ancestors 'self'; "
    "form-action 'self'; object-src 'none'; base-uri 'self'"
)
"""No request leaves the dashboard's own address; Streamlit and plotly need inline code."""
NAMES: Mapping[str, str] = {"run": "run", "incident": "incident", "hardware": "node"}
"""What a page is about: `/run/demo` is understood as `/run?run=demo`."""
_HEAD, _END = "<head>", "</body>"
_PLACE = (
    "<script>window.__streamlit={BACKEND_BASE_URL:new URL('.',location.href).href,"
    "HOST_CONFIG:{allowedOrigins:[location.origin],useExternalAuthToken:false}}</script>"
)
"""Where the server is, and that no page around this one may steer it: else Streamlit asks first."""
_STATE = "data-test-connection-state"
"""How Streamlit's page says that it has asked the server to draw."""
_ASKED_ANEW = (b"accept-encoding", b"if-none-match", b"if-modified-since")


class Front:
    """The server's outermost part."""

    def __init__(
        self,
        app: ASGIApp,
        titles: Callable[[], Mapping[str, str]],
        modules: Callable[[str], Sequence[str]],
    ) -> None:
        """Serve `app`.

        `titles` gives those of the pages by path, `modules` where the browser gets what draws a
        page, that which takes longest to start first; both are asked when a request is there.
        """
        self._app = app
        self._titles = titles
        self._modules = modules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        titles = self._titles()
        page, _, name = scope["path"].strip("/").partition("/")
        if page in NAMES and name and not name.startswith("_stcore/"):
            # relative, so that it holds behind a proxy that adds a prefix
            up = "../" * scope["path"].strip("/").count("/")
            address = f"{up}{page}?{NAMES[page]}={quote(name, safe='')}"
            await RedirectResponse(address)(scope, receive, send)
            return
        known = not name and (not page or page in titles)
        if known:
            kept = [header for header in scope["headers"] if header[0] not in _ASKED_ANEW]
            scope = {**scope, "headers": kept}
        ahead = _ahead(self._modules(page or next(iter(titles)))) if known else ""
        answer = _Answer(send, known, ahead)
        await self._app(scope, receive, answer)
        if answer.unknown:
            content = nowhere(scope["path"], titles)
            await HTMLResponse(content, status_code=404)(scope, receive, send)


class _Answer:
    """Passes an answer on; changes the start page, and holds it back where nothing is there."""

    def __init__(self, send: Send, known: bool, ahead: str) -> None:
        self._send = send
        self._known = known
        self._ahead = ahead
        self._start: Message | None = None
        self._body = b""
        self.unknown = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kind = MutableHeaders(scope=message).get("content-type", "")
            if kind.startswith("text/html") and message["status"] == 200:
                self.unknown = not self._known
                self._start = message
                return
        if self._start is None:
            await self._send(message)
        elif not self.unknown:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._page(self._start)

    async def _page(self, start: Message) -> None:
        text = self._body.decode().replace(_HEAD, _HEAD + _PLACE, 1)
        text = text.replace(_END, self._ahead + _END, 1)
        body = text.replace("<title>Streamlit</title>", "<title>Headway</title>", 1).encode()
        headers = MutableHeaders(scope=start)
        headers["content-length"] = str(len(body))
        headers["content-security-policy"] = POLICY
        headers["referrer-policy"] = "no-referrer"
        headers["x-content-type-options"] = "nosniff"
        headers["cache-control"] = "no-cache"
        del headers["etag"], headers["last-modified"]
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def _ahead(modules: Sequence[str]) -> str:
    """Return what makes a browser load modules now, and start them while the server is drawing."""
    links = "".join(f'<link rel="modulepreload" crossorigin href="{one}">' for one in modules)
    begun = "".join(f'import("{one}");' for one in modules)
    return (
        f"{links}<script>new MutationObserver((_,seen)=>{{"
        f"if(document.querySelector('[{_STATE}=CONNECTED]')){{seen.disconnect();{begun}}}}})"
        f".observe(document.body,{{subtree:true,attributeFilter:['{_STATE}']}})</script>"
    )


def nowhere(path: str, titles: Mapping[str, str]) -> str:
    """Return the page for an address at which there is nothing."""
    up = "../" * path.strip("/").count("/") or "./"
    links = _links(up, list(titles.items()))
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,"><title>No such page - Headway</title>'
        "<style>:root{color-scheme:light dark}body{font-family:sans-serif;max-width:40rem;"
        "margin:4rem auto;padding:0 1rem;line-height:1.5;overflow-wrap:anywhere}</style></head>"
        f"<body><main><h1>No such page</h1><p>Headway has no page {escape(path)}.</p>"
        f"<p>It has {links}.</p></main></body></html>"
    )


def _links(up: str, pages: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f'<a href="{up}{escape(path)}">{escape(title)}</a>' for path, title in pages)
