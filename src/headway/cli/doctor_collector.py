"""What `headway doctor` sees of the collector: who answers, what the token allows, the database.

Asked with the standard library, so that it works on a training node without the server's extra.
"""

import json
import socket
import ssl
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headway.cli.findings import Finding, fine, problem, warning
from headway.listening import holder
from headway.redaction import masked
from headway.settings import (
    AgentSettings,
    ClientSettings,
    CollectorSettings,
    DashboardSettings,
    load,
)

_TIMEOUT = 5.0
_MILLISECOND, _SECOND = 10**6, 10**9
_CLOCK_LIMIT = _SECOND
"""Offset of a clock in ns that is worth a word; the collector corrects what it measured."""
_SILENCE = 120.0
"""Seconds without an event of a running run that are worth a word."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_WEAK = 20
"""Characters below which a token could be guessed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Peer:
    """A collector as one of the programs here reaches it."""

    endpoint: str
    token: str | None
    ca_file: Path | None


class _RefusedError(Exception):
    """An answer other than yes."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def reachable(*, exporter: bool, server: bool) -> Iterator[Finding]:
    """Look at the collector as the agent (exporter) and the other commands (server) reach it."""
    needs: dict[_Peer, list[str]] = {}
    for wanted, settings, scope in (
        (exporter, load(AgentSettings), "ingest"),
        (server, load(ClientSettings), "read"),
    ):
        if wanted:
            peer = _Peer(
                endpoint=settings.endpoint.rstrip("/"),
                token=settings.token,
                ca_file=settings.ca_file,
            )
            needs.setdefault(peer, []).append(scope)
    for peer, scopes in needs.items():
        yield from _look(peer, scopes)


def tokens() -> Iterator[Finding]:
    """Look at the tokens of a collector on this machine."""
    from headway.collector.access import check_address
    from headway.collector.tokens import read

    settings = load(CollectorSettings)
    check_address(settings)
    if settings.token is not None and len(settings.token) < _WEAK:
        yield warning(
            "tokens",
            f"the collector's own token has {len(settings.token)} characters",
            "make one that cannot be guessed: headway token add NAME --scope admin",
        )
    try:
        found = read(settings.tokens)
    except FileNotFoundError:
        where = f"no file {str(settings.tokens)!r}"
        if settings.token is None:
            yield fine("tokens", f"{where}: a collector here answers this machine alone")
        return
    if settings.tokens.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield warning(
            "tokens", f"others may read {settings.tokens}", f"chmod 600 {settings.tokens}"
        )
    yield fine("tokens", f"{len(found)} in {settings.tokens}")


def database() -> Iterator[Finding]:
    """Look whether a collector here could open its database."""
    from headway.storage.probe import State, probe

    path = load(CollectorSettings).database
    found = probe(path)
    if found.state is State.HELD:  # as it should be where a collector runs
        yield fine("database", f"{path} is in use by another process")
    elif found.state is State.USABLE:
        yield fine("database", found.words)
    else:
        yield problem("database", found.words, found.next_step or "choose another file")


def ports(*, exporter: bool, server: bool) -> Iterator[Finding]:
    """Look who has the ports of the services."""
    for wanted, name, settings, path, sign in (
        (server, "collector", load(CollectorSettings), "/healthz", b"ok"),
        (exporter, "agent", load(AgentSettings), "/metrics", b"headway_"),
        (server, "dashboard", load(DashboardSettings), "/_stcore/health", b"ok"),
    ):
        if wanted and settings.port:
            yield _port(name, settings.host, settings.port, path, sign)


def _look(peer: _Peer, scopes: list[str]) -> Iterator[Finding]:
    where = masked(peer.endpoint)
    host = urlsplit(peer.endpoint).hostname
    if peer.endpoint.startswith("http://") and peer.token and host not in _LOOPBACK:
        yield warning(
            "collector",
            f"the token goes to {where} in the clear",
            "let the collector speak TLS (docs/security.md) and use https://",
        )
    try:
        _ask(peer, "/readyz")
    except _RefusedError as error:
        yield problem(
            "collector", f"{where} is not ready: {error}", "wait, and see the collector's log"
        )
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        yield problem(
            "collector",
            f"none answers at {where} ({masked(str(reason))})",
            "start one with `headway collect`, or set HEADWAY_ENDPOINT, or HEADWAY_CA_FILE for TLS",
        )
        return
    yield fine("collector", f"ready at {where}")
    try:
        yield from _say_version_and_scopes(peer, scopes)
        yield _say_clock(peer)
        if "read" in scopes:
            yield _say_age(peer)
    except _RefusedError as error:
        yield problem("token", f"{where} answers {error.status}: {error}", "set HEADWAY_TOKEN")


def _say_version_and_scopes(peer: _Peer, scopes: list[str]) -> Iterator[Finding]:
    found = json.loads(_ask(peer, "/api/v1/access"))
    own = version("headway")
    if found["version"] == own:
        yield fine("version", f"{own}, as the collector's")
    else:
        yield warning(
            "version",
            f"{own} here, {found['version']} at the collector",
            "update the collector first: it takes what an older agent sends",
        )
    missing = [scope for scope in scopes if scope not in found["scopes"]]
    if found["name"] is None:
        yield fine("token", "the collector asks for none")
    elif missing:
        yield problem(
            "token",
            f"{found['name']!r} has the scope {' and '.join(found['scopes'])}, "
            f"and this machine needs {' and '.join(missing)}",
            f"headway token add NAME --scope {' --scope '.join(scopes)} where the collector runs",
        )
    else:
        runs = "" if found["run"] is None else f" for runs {found['run']}"
        yield fine("token", f"{found['name']!r} allows {' and '.join(found['scopes'])}{runs}")


def _say_clock(peer: _Peer) -> Finding:
    sent = time.time_ns()
    theirs = int(json.loads(_ask(peer, "/api/v1/clock"))["time"])
    received = time.time_ns()
    offset = (sent + received) // 2 - theirs
    error = (received - sent) // 2
    side = "ahead of" if offset > 0 else "behind"
    off = f"{abs(offset) / _MILLISECOND:,.1f} ms {side} the collector's"
    sentence = f"{off}, known to within {error / _MILLISECOND:,.1f} ms"
    if abs(offset) - error > _CLOCK_LIMIT:
        return warning(
            "clock", sentence, "let chrony or systemd-timesyncd set this machine's clock"
        )
    return fine("clock", sentence)


def _say_age(peer: _Peer) -> Finding:
    live = [run for run in json.loads(_ask(peer, "/api/v1/runs"))["runs"] if _is_running(run)]
    ages = [
        float(line.rpartition(" ")[2])
        for line in _ask(peer, "/metrics").decode().splitlines()
        if line.startswith("headway_last_event_age_seconds{")
    ]
    if not ages:
        return fine("data", "the collector has no run yet")
    sentence = (
        f"{len(ages)} runs, {len(live)} of them running; the newest event is {min(ages):.0f} s old"
    )
    if live and min(ages) > _SILENCE:
        return warning("data", sentence, "see the agents' logs, or the training's")
    return fine("data", sentence)


def _is_running(run: dict[str, Any]) -> bool:
    return bool(run["state"] == "running")


def _ask(peer: _Peer, path: str) -> bytes:
    """Return what the collector answers.

    Raises:
        _RefusedError: an error that it explains.
        OSError: nobody answers, or nobody that may be trusted.
    """
    request = urllib.request.Request(  # noqa: S310  # the settings allow http and https alone
        peer.endpoint + path,
        headers={} if peer.token is None else {"Authorization": f"Bearer {peer.token}"},
    )
    handlers: list[urllib.request.BaseHandler] = []
    if urlsplit(peer.endpoint).hostname in _LOOPBACK:
        handlers.append(urllib.request.ProxyHandler({}))
    if peer.ca_file is not None:
        context = ssl.create_default_context(cafile=str(peer.ca_file))
        handlers.append(urllib.request.HTTPSHandler(context=context))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            raise _RefusedError(error.code, _explained(error.read())) from error


def _explained(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return "it is no Headway collector"


def _port(name: str, host: str, port: int, path: str, sign: bytes) -> Finding:
    subject = f"port {port}"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            taken = error
        else:
            return fine(subject, f"free for the {name}")
    peer = _Peer(endpoint=_address(host, port), token=None, ca_file=None)
    try:
        ours = sign in _ask(peer, path)
    except (_RefusedError, OSError, ValueError):
        ours = False
    if ours:
        return fine(subject, f"the {name} has it")
    who = holder(port)
    why = taken.strerror if who is None else f"{who} has it"
    return warning(
        subject,
        f"cannot be used by the {name}: {why}",
        f"set HEADWAY_{name.upper()}_PORT, or end the program that has it",
    )


def _address(host: str, port: int) -> str:
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"
