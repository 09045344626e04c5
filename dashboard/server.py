"""The process that serves the pages: Streamlit in this process, with nothing sent elsewhere."""

import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from headway.dashboard.palette import theme_options
from headway.listening import TAKEN, refused_port
from headway.logs import configure
from headway.settings import ClientSettings, DashboardSettings, SettingError

_APP = Path(__file__).with_name("app.py")


def main(settings: DashboardSettings, client: ClientSettings, *, port_given: bool = False) -> int:
    """Serve the pages until told to stop; print the address once they answer.

    A port that is taken is replaced by a free one, unless it was given.
    """
    from streamlit.web import cli

    configure(settings)
    port = choose_port(settings.host, settings.port, fixed=port_given)
    if settings.port not in (0, port):
        print(f"port {settings.port} is busy; using {port}", flush=True)
    # The pages run in this process and read their settings as every command does.
    os.environ["HEADWAY_CLIENT_ENDPOINT"] = client.endpoint
    os.environ["HEADWAY_CLIENT_TIMEOUT"] = str(client.timeout)
    if client.token is not None:
        os.environ["HEADWAY_CLIENT_TOKEN"] = client.token
    if client.ca_file is not None:
        os.environ["HEADWAY_CLIENT_CA_FILE"] = str(client.ca_file)
    os.environ["HEADWAY_DASHBOARD_REFRESH"] = str(settings.refresh)
    threading.Thread(target=_announce, args=(settings.host, port), daemon=True).start()
    cli.main(
        args=["run", str(_APP), *flags(settings.host, port)],
        prog_name="streamlit",
        standalone_mode=False,
    )
    return 0


def flags(host: str, port: int) -> list[str]:
    """Return how Streamlit is started: quiet, local, in both looks, telling nobody."""
    options = {
        "server.address": host,
        "server.port": str(port),
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "logger.level": "warning",
        "logger.hideWelcomeMessage": "true",
    }
    return [f"--{name}={value}" for name, value in {**options, **theme_options()}.items()]


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
