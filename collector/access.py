"""Who may do what at the collector: tokens with scopes, or anybody on this machine where none is.

What a request needs stands in `needed_scope`; whether its sender may write to a run is asked record
by record, of the `Access` that `TokenCheck` leaves in the request's state as `access`.
"""

import fnmatch
import hmac
import ipaddress
import logging
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from headway.collector import tokens
from headway.collector.tokens import ADMIN, INGEST, READ, SCOPES, Token, TokenError
from headway.events import Envelope, RunStarted
from headway.settings import CollectorSettings, SettingError

_LOG = logging.getLogger(__name__)

OPEN_PATHS = ("/healthz", "/readyz")
"""What everybody may ask."""
_FOR_ANY_TOKEN = ("/api/v1/clock", "/api/v1/access")
_READ_BY_POST = ("/api/v1/sql", "/api/v1/alerts/route")
_READING_METHODS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What the sender of a request may do."""

    scopes: frozenset[str]
    name: str | None = None
    """Name of the token; None where none is needed."""
    run: str | None = None
    """Pattern of the names of the runs that it may write to; None is every run and node."""

    def refusal(self, envelope: Envelope) -> str | None:
        """Return why a record may not be stored, or None where it may.

        A run's name is what stands before the last hyphen of its identity, and what `run.started`
        calls it: neither may be another's. Records about no run change the ledger of every run of
        their node, so a token for some runs may not write them.
        """
        if self.run is None:
            return None
        if envelope.run is None:
            return f"the token {self.name!r} may write to runs {self.run!r}, not about nodes"
        names = [envelope.run.rpartition("-")[0] or envelope.run]
        if isinstance(envelope.event, RunStarted):
            names.append(envelope.event.run_name)
        for name in names:
            if not fnmatch.fnmatchcase(name, self.run):
                return f"the token {self.name!r} may write to runs {self.run!r}, not to {name!r}"
        return None


EVERYBODY = Access(scopes=frozenset(SCOPES))
"""The sender of a request to a collector that needs no token."""


def needed_scope(method: str, path: str) -> str | None:
    """Return the scope that a request needs; None where any token will do."""
    if path in _FOR_ANY_TOKEN:
        return None
    if path.startswith("/v1/"):
        return INGEST
    return READ if method in _READING_METHODS or path in _READ_BY_POST else ADMIN


class TokenBook:
    """The tokens that are valid now: the setting, and the file's, read again when it changes.

    Once there was a file, its loss or a fault in it lets nobody in by it: who deletes it or breaks
    it has not said that everybody is welcome.
    """

    def __init__(self, path: Path, setting: str | None = None) -> None:
        """Read the file, if there is one; `setting` is a secret with every scope.

        Raises:
            TokenError: the file cannot be used.
        """
        self._path = path
        self._setting = None if setting is None else tokens.digest(setting)
        self._seen: tuple[int, ...] | None = None
        self._was_there = False
        self._tokens: tuple[Token, ...] = ()
        self._fault: TokenError | None = None
        self._refresh()
        if self._fault is not None:
            raise self._fault

    @property
    def needs_token(self) -> bool:
        """Return whether somebody without a token is turned away."""
        self._refresh()
        return self._was_there or self._setting is not None

    def access(self, secret: str) -> Access | None:
        """Return what a secret allows, or None where it is none of ours.

        Every hash is compared in full, whichever fits. A secret that stands in the file has what
        the file says, even where it is the setting, too.

        Raises:
            TokenError: the file cannot be read now.
        """
        self._refresh()
        given = tokens.digest(secret)
        found: Token | None = None
        for token in self._tokens:
            if hmac.compare_digest(given, token.sha256):
                found = token
        is_setting = hmac.compare_digest(given, self._setting or "")
        if found is not None:
            every = ADMIN in found.scopes
            scopes = frozenset(SCOPES if every else found.scopes)
            return Access(scopes=scopes, name=found.name, run=found.run)
        if is_setting:
            return Access(scopes=frozenset(SCOPES), name="token")
        if self._fault is not None:
            raise self._fault
        return None

    def _refresh(self) -> None:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            seen = None
        except OSError as error:
            self._read_failed(TokenError(f"cannot read the tokens in {str(self._path)!r}: {error}"))
            return
        else:
            seen = (status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode)
        if seen == self._seen and self._fault is None:
            return
        if seen is None:
            self._tokens, self._seen, self._fault = (), None, None
            _LOG.error(
                "the file of tokens %s is gone: its tokens are not valid any more", self._path
            )
            return
        self._was_there = True
        try:
            self._tokens = tokens.read(self._path)
        except (TokenError, FileNotFoundError) as error:
            self._read_failed(TokenError(str(error)))
            return
        if self._seen is not None:
            _LOG.info("read %d tokens again from %s", len(self._tokens), self._path)
        self._seen, self._fault = seen, None

    def _read_failed(self, fault: TokenError) -> None:
        self._was_there = True
        self._tokens = ()
        if self._fault is None:
            _LOG.error("%s; no token of it is valid until it can be read", fault)
        self._fault = fault


def check_address(settings: CollectorSettings) -> None:
    """Refuse an address that others can reach while there is no token.

    Raises:
        SettingError: such an address, a host name that nobody knows, or a file of tokens that
            cannot be used.
    """
    try:
        book = TokenBook(settings.tokens, settings.token)
    except TokenError as error:
        raise SettingError(str(error)) from error
    if not book.needs_token and not _is_loopback(settings.host):
        raise SettingError(
            f"host {settings.host!r} can be reached from other machines and there is no token; "
            f"make one with `headway token add NAME --scope {INGEST}` or set "
            "HEADWAY_COLLECTOR_TOKEN, or listen on 127.0.0.1"
        )


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host or None, 0, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise SettingError(f"cannot resolve host {host!r}: {error}") from error
    return all(ipaddress.ip_address(address[0]).is_loopback for *_, address in found)
