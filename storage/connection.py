"""How a collector is asked: over HTTP, with every failure as an error that says what to do."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx

from headway.redaction import masked
from headway.settings import ClientSettings, SettingError
from headway.storage.collector_errors import (
    CollectorBusy,
    CollectorError,
    CollectorRefused,
    CollectorTimedOut,
    CollectorUnreachable,
    UnknownIncident,
    UnknownNode,
    UnknownQuestion,
    UnknownRun,
)

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]  # ships no types

ARROW = "application/vnd.apache.arrow.stream"
"""Media type of an answer in columns."""
BACKUP = "/api/v1/backup"
"""Where the collector copies its database."""
BACKUP_MEDIA = "application/vnd.duckdb"
"""Media type of such a copy."""
AS_OF = "Headway-As-Of"
"""Header of an answer: the time in UTC ns up to which it is true, also of one that is confirmed."""
_ITEMS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An answer with its version, or None where it did not change; true up to `as_of` (UTC ns)."""

    content: dict[str, Any] | None
    version: str | None
    as_of: int | None


class Connection:
    """Connections to one collector.

    Each question raises `CollectorError`, mostly one of its subclasses, where it has no answer.
    """

    def __init__(
        self, settings: ClientSettings, transport: httpx.BaseTransport | None = None
    ) -> None:
        """Make a client; nothing is sent before the first question."""
        headers = {} if settings.token is None else {"Authorization": f"Bearer {settings.token}"}
        self._endpoint = settings.endpoint.rstrip("/")
        # To read the system's authorities takes longer than a question; without TLS nobody does.
        verify: bool | ssl.SSLContext = self._endpoint.startswith("https:")
        if settings.ca_file is not None:
            verify = _context(settings.ca_file)
        # trust_env: a proxy meant for the internet must not be asked for a loopback address.
        self._http = httpx.Client(
            base_url=self._endpoint,
            headers=headers,
            timeout=settings.timeout,
            transport=transport,
            verify=verify,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close its connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def changed(self, path: str, query: Mapping[str, Any], version: str | None) -> Change:
        """Return an answer, or that `version` is still that of the answer."""
        known = {} if version is None else {"If-None-Match": version}
        response = self._send("GET", path, given(query), None, known)
        told = response.headers.get(AS_OF)
        same = response.status_code == httpx.codes.NOT_MODIFIED
        return Change(
            content=None if same else self._answer(path, response),
            version=response.headers.get("etag"),
            as_of=None if told is None else int(told),
        )

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer of an endpoint."""
        return self._answer(path, self._send("GET", path, query, None))

    def post(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Order something of an endpoint; return its answer."""
        return self._answer(path, self._send("POST", path, None, content))

    def all(
        self, path: str, name: str, filters: Mapping[str, Any], page: int = _ITEMS_AT_ONCE
    ) -> list[dict[str, Any]]:
        """Return the items of all pages."""
        query = given({"limit": page, **filters})
        found: list[dict[str, Any]] = []
        while True:
            answer = self.get(path, query)
            found += answer[name]
            if answer.get("next") is None:
                return found
            query["cursor"] = answer["next"]

    def table(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        content: Mapping[str, Any] | None,
    ) -> "pyarrow.Table":
        """Return an answer in columns."""
        import pyarrow  # only where an answer in columns is wanted

        response = self._send(method, path, query, content, {"Accept": ARROW})
        if not response.headers.get("content-type", "").startswith(ARROW):
            raise self._error(path, response)
        with pyarrow.ipc.open_stream(response.content) as reader:
            return reader.read_all()

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        content: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Return the answer to one request."""
        try:
            response = self._http.request(method, path, params=query, json=content, headers=headers)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if response.is_success:
            return response
        if response.status_code == httpx.codes.NOT_MODIFIED and headers:
            return response
        raise self._error(path, response)

    def _answer(self, path: str, response: httpx.Response) -> dict[str, Any]:
        found = _object(response)
        if found is None:
            raise self._error(path, response)
        return found

    def _unreachable(self, error: httpx.HTTPError) -> CollectorError:
        if isinstance(error, httpx.ReadTimeout):
            return CollectorTimedOut(
                f"The collector at {masked(self._endpoint)} gave no answer in time.",
                "Ask for less, such as a shorter time, or wait longer with HEADWAY_CLIENT_TIMEOUT.",
            )
        step = "Start one with `headway collect`, or set HEADWAY_ENDPOINT to its address."
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            step = "Name the authority that signed its certificate with HEADWAY_CA_FILE."
        elif self._endpoint.startswith("http:") and isinstance(
            error, httpx.ReadError | httpx.RemoteProtocolError
        ):
            step = f"If it speaks TLS, its address begins with https://. {step}"
        return CollectorUnreachable(
            f"No collector answers at {masked(self._endpoint)} ({error}).", step
        )

    def _error(self, path: str, response: httpx.Response) -> CollectorError:
        """Return what an answer says that is not the one asked for."""
        answer = _object(response)
        if answer is None or "error" not in answer:
            return CollectorUnreachable(
                f"What answers at {masked(self._endpoint)} is no Headway collector.",
                "Set HEADWAY_ENDPOINT to the collector's address.",
            )
        kind: type[CollectorError] = CollectorRefused
        if "Retry-After" in response.headers:
            kind = CollectorBusy
        if response.status_code == httpx.codes.NOT_FOUND:
            one_of = path.removeprefix("/api/v1/").rpartition("/")[0].partition("/")[0]
            kind = {
                "incidents": UnknownIncident,
                "nodes": UnknownNode,
                "questions": UnknownQuestion,
                "alerts": CollectorRefused,
            }.get(one_of, UnknownRun)
        return kind(str(answer["error"]), str(answer.get("next", "")))

    def backup(self, path: Path) -> int:
        """Write a consistent copy of the collector's database to a new file; return its bytes.

        Raises:
            OSError: the file exists already or cannot be written.
        """
        # A copy takes what it takes.
        unlimited = httpx.Timeout(self._http.timeout.connect, read=None)
        try:
            with (
                self._http.stream("POST", BACKUP, timeout=unlimited) as response,
                path.open("xb") as file,
            ):
                if response.headers.get("content-type") != BACKUP_MEDIA:
                    response.read()
                    raise self._error(BACKUP, response)
                for part in response.iter_bytes():
                    file.write(part)
                return file.tell()
        except httpx.HTTPError as error:
            path.unlink(missing_ok=True)
            raise self._unreachable(error) from error
        except CollectorError:
            path.unlink(missing_ok=True)
            raise


def given(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a question has a value."""
    return {name: value for name, value in query.items() if value is not None}


def _context(ca_file: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except OSError as error:
        raise SettingError(
            f"ca_file must hold certificates in PEM form, got {str(ca_file)!r}: {error}"
        ) from error


def _object(response: httpx.Response) -> dict[str, Any] | None:
    try:
        answer = response.json()
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None
