"""The process that serves the pages: Streamlit in this process, with nothing sent elsewhere."""

import json
import logging
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from headway.dashboard import sign_in
from headway.dashboard.palette import theme_options
from headway.listening import TAKEN, refused_port
from headway.logs import configure
from headway.settings import ClientSettings, DashboardSettings, SettingError

_log = logging.getLogger(__name__)

_APP = Path(__file__).with_name("app.py")
_DRAWN_BY = ("PlotlyChart", "Html", "Metric", "Selectbox", "ButtonGroup")
"""What of Streamlit draws the pages and is loaded by a browser only when it is needed."""


def main(settings: DashboardSettings, client: ClientSettings, *, port_given: bool = False) -> int:
    """Serve the pages until told to stop; print the address once they answer.

    A port that is taken is replaced by a free one, unless it was given.
    """
    from starlette.middleware import Middleware
    from streamlit.starlette import App

    from headway.dashboard.front import Front
    from headway.dashboard.way_back import WayBack

    configure(settings)
    secrets = sign_in.secrets(settings)
    port = choose_port(settings.host, settings.port, fixed=port_given)
    if settings.port not in (0, port):
        print(f"port {settings.port} is busy; using {port}", flush=True)
    # The pages run in this process and read their settings as every command does.
    for one in (client, settings):
        for field in fields(one):
            value = getattr(one, field.name)
            if value is not None:
                os.environ[f"HEADWAY_{one.section}_{field.name}".upper()] = str(value)
    app = App(
        _APP,
        secrets=secrets,
        middleware=[
            *([Middleware(WayBack, titles=_titles)] if secrets else []),
            Middleware(Front, titles=_titles, modules=_modules),
        ],
        on_script_error=_failed,
    )
    threading.Thread(target=_announce, args=(settings.host, port), daemon=True).start()
    app.run(config={**options(settings.host, port), **sign_in.options(settings)})
    return 0


def options(host: str, port: int) -> Mapping[str, Any]:
    """Return how Streamlit is started: quiet, local, in both looks, telling nobody."""
    return {
        "server.address": host,
        "server.port": port,
        "server.headless": True,
        "server.fileWatcherType": "none",
        "server.maxUploadSize": 1,
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "logger.level": "warning",
        "logger.hideWelcomeMessage": True,
        **theme_options(),
    }


def _titles() -> Mapping[str, str]:
    # Only once the server runs: pages that keep answers want to know where.
    from headway.dashboard.pages import PAGES

    return {page.path: page.title for page in PAGES}


def _modules(path: str) -> Sequence[str]:
    """Return where a browser gets what draws a page, figures first: they take longest to start."""
    from headway.dashboard.pages import PAGES

    plotted = any(page.path == path and page.plotted for page in PAGES)
    return [place for name, place in _drawn_by().items() if plotted or name != "PlotlyChart"]


@cache
def _drawn_by() -> Mapping[str, str]:
    """Return the addresses of parts of Streamlit's front end by name, where it tells them."""
    import streamlit

    manifest = Path(streamlit.__file__).parent / "static" / "manifest.json"
    try:
        parts = json.loads(manifest.read_text()).values()
    except (OSError, ValueError):
        return {}  # a browser finds them without, only later
    places = {one.get("name"): f"./{one['file']}" for one in parts}
    return {name: places[name] for name in _DRAWN_BY if name in places}


def _failed(error: Exception) -> bool:
    """Say in words that a page failed; what and where goes to the log."""
    import streamlit as st

    from headway.dashboard import markup

    _log.error("a page failed", exc_info=error)
    st.html(
        markup.notice(
            f"This page could not be drawn ({type(error).__name__}).",
            "Load it again. If it fails again, the dashboard's log says where.",
        )
    )
    return True


def choose_port(host: str, wanted: int, *, fixed: bool = False) -> int:
    """Return the wanted port where it is free, else one that the system chooses.

    Raises:
        SettingError: no address of this machine, or a port that is `fixed` and taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in (wanted, 0):
        try:
            with socket.socket(family) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
                return int(probe.getsockname()[1])
        except OSError as error:
            if fixed and error.errno in TAKEN:
                raise refused_port(host, port, error) from error
    raise SettingError(f"no free port on {host!r}; give an address of this machine with --host")


def _announce(host: str, port: int) -> None:
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{port}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        try:
            opener.open(f"{address}/_stcore/health", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
        else:
            print(f"listening on {address}", file=sys.stdout, flush=True)
            return
