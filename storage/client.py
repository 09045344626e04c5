"""Client of the collector's read API, for the dashboard and the command line.

Every error is one sentence with the next step, ready to be shown to a person.
"""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import httpx

from headway.redaction import masked
from headway.settings import ClientSettings, SettingError

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
_EVENTS_AT_ONCE = 10_000
_STEPS_AT_ONCE = 1_000_000


class CollectorError(RuntimeError):
    """The collector did not give the answer; `sentence` says why, `next_step` what to do."""

    def __init__(self, sentence: str, next_step: str) -> None:
        """Keep both parts for views that show them apart."""
        super().__init__(f"{sentence} {next_step}")
        self.sentence = sentence
        self.next_step = next_step


class CollectorUnreachable(CollectorError):  # noqa: N818  # the condition reads as a name
    """Nothing answers at the endpoint, or not in time."""


class CollectorTimedOut(CollectorUnreachable):
    """The collector took longer than the client waits."""


class UnknownRun(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector has no such run."""


class UnknownIncident(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector has no such incident."""


class UnknownNode(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector knows nothing of such a node."""


class UnknownQuestion(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector has no such saved question."""


class CollectorRefused(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector answered with an error: wrong token, not ready, wrong request."""


class CollectorBusy(CollectorRefused):
    """The collector cannot answer now, and says that it can in a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An answer with its version, or None where it did not change; true up to `as_of` (UTC ns)."""

    content: dict[str, Any] | None
    version: str | None
    as_of: int | None


class CollectorClient:
    """Typed access to the collector's read API."""

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

    def runs(self, **filters: Any) -> list[dict[str, Any]]:
        """Return the summary of every run, the newest first; filters as the API declares them.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self._all("/api/v1/runs", "runs", filters)

    def fleet(self, by: str | None = None, **filters: Any) -> dict[str, Any]:
        """Return the totals of all runs together, by the values of a label if one is named.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self.get("/api/v1/fleet", _given(filters | {"by": by}))

    def health(self) -> dict[str, Any]:
        """Return how the collector is.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self.get("/api/v1/health")

    def report(self, run: str) -> dict[str, Any]:
        """Return the report of a run, by its id or its name.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self.get(f"/api/v1/runs/{quote(run, safe='')}/report")

    def intervals(self, run: str) -> list[dict[str, Any]]:
        """Return the ledger's intervals of a run, by its id or its name.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return list(self.get(f"/api/v1/runs/{quote(run, safe='')}/intervals")["intervals"])

    def steps(self, run: str, points: int = 2000) -> list[dict[str, Any]]:
        """Return the step curve of a run, thinned to about `points`.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        path = f"/api/v1/runs/{quote(run, safe='')}/steps"
        return list(self.get(path, {"points": points})["points"])

    def window(
        self, run: str, start: int | None, end: int | None, excluded: Sequence[tuple[int, int]] = ()
    ) -> dict[str, Any]:
        """Return the ledger of a run between two times in UTC ns; None is its own begin or end.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        query: dict[str, int | str | list[str]] = {
            name: value for name, value in (("start", start), ("end", end)) if value is not None
        }
        query["exclude"] = [f"{first}-{last}" for first, last in excluded]
        return self.get(f"/api/v1/runs/{quote(run, safe='')}/window", query)

    def comparison(self, **asked: Any) -> dict[str, Any]:
        """Return two sides beside each other; parameters as the API declares them.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self.get("/api/v1/comparison", _given(asked))

    def events(self, **filters: Any) -> list[dict[str, Any]]:
        """Return stored events in order of their time; filters as the API declares them.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self._all("/api/v1/events", "events", filters, page=_EVENTS_AT_ONCE)

    def step_records(
        self, run: str, first: int = 1, last: int | None = None, rank: int | None = None
    ) -> "pyarrow.Table":
        """Return what was measured of each completed step of a run.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        import pyarrow  # only where an answer in columns is wanted

        path = f"/api/v1/runs/{quote(run, safe='')}/step_records"
        query = _given({"first": first, "last": last, "rank": rank, "limit": _STEPS_AT_ONCE})
        tables = []
        while True:
            tables.append(self._table("GET", path, query, None))
            after = (tables[-1].schema.metadata or {}).get(b"next")
            if after is None:
                return pyarrow.concat_tables(
                    [table.replace_schema_metadata(None) for table in tables]
                )
            query["cursor"] = after.decode()

    def sql(
        self,
        statement: str,
        limit: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        counted: bool = False,
    ) -> dict[str, Any]:
        """Return the answer to one SQL statement: columns, rows, and whether rows are missing.

        `parameters` are bound by name; `counted` asks how many rows there are in all.

        Raises:
            CollectorError: refused, or no answer; see its subclasses.
        """
        asked = {"sql": statement, "limit": limit, "parameters": parameters or None}
        return self.post("/api/v1/sql", _given(asked | {"counted": 1 if counted else None}))

    def sql_table(
        self,
        statement: str,
        limit: int | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> "pyarrow.Table":
        """Return the answer to one SQL statement in columns; its metadata says if rows are missing.

        Raises:
            CollectorError: refused, or no answer; see its subclasses.
        """
        asked = {"sql": statement, "limit": limit, "parameters": parameters or None}
        return self._table("POST", "/api/v1/sql", None, _given(asked))

    def questions(self) -> list[dict[str, Any]]:
        """Return every saved question with its parameters and its SQL.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return list(self.get("/api/v1/questions")["questions"])

    def question(
        self, name: str, parameters: Mapping[str, Any] | None = None, limit: int | None = None
    ) -> dict[str, Any]:
        """Return the answer to a saved question, with values for its parameters.

        Raises:
            CollectorError: refused, or no answer; see its subclasses.
        """
        pairs = [f"{one}={value}" for one, value in _given(parameters or {}).items()]
        path = f"/api/v1/questions/{quote(name, safe='')}"
        return self.get(path, _given({"parameter": pairs, "limit": limit}))

    def views(self) -> list[dict[str, Any]]:
        """Return what SQL can read, with the columns and what they say.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return list(self.get("/api/v1/views")["views"])

    def incidents(self, run: str | None = None, **filters: Any) -> list[dict[str, Any]]:
        """Return the incidents of a run, or of all runs, the newest first; filters as the API's.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self._all("/api/v1/incidents", "incidents", filters | {"run": run})

    def incident(self, incident: str) -> dict[str, Any]:
        """Return one incident by its identity.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self.get(f"/api/v1/incidents/{quote(incident, safe='')}")

    def notes(self, **filters: Any) -> list[dict[str, Any]]:
        """Return what people said, the newest first; filters as the API declares them.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self._all("/api/v1/notes", "notes", filters)

    def note(
        self,
        about: str,
        subject: str,
        author: str,
        text: str | None = None,
        *,
        labels: Sequence[str] = (),
        labels_removed: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Record a note, or labels; return all that was said about the same.

        Raises:
            CollectorError: not recorded; see its subclasses.
        """
        said = {"about": about, "subject": subject, "author": author, "text": text}
        changed = {"label": list(labels), "remove_label": list(labels_removed)}
        return self.post("/api/v1/notes", _given(said | changed))

    def results(self, **filters: Any) -> list[dict[str, Any]]:
        """Return attached results, the newest first; filters as the API declares them.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self._all("/api/v1/results", "results", filters)

    def attach(self, title: str, content: str, author: str, **to: Any) -> dict[str, Any]:
        """Keep a result with the configuration named by `run` and `attempt`, or `configuration`.

        Raises:
            CollectorError: not kept; see its subclasses.
        """
        said = {"title": title, "content": content, "author": author, **to}
        return dict(self.post("/api/v1/results", _given(said))["result"])

    def search(self, words: str, **filters: Any) -> dict[str, Any]:
        """Return what was noted, seen and configured; filters as the API declares them.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self.get("/api/v1/search", _given(filters | {"words": words}))

    def access(self) -> dict[str, Any]:
        """Return what the token of this client allows, and the collector's version.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self.get("/api/v1/access")

    def nodes(self) -> dict[str, Any]:
        """Return every node, the one that fails most first, and the rate of the fleet.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self.get("/api/v1/nodes")

    def node(self, node: str) -> dict[str, Any]:
        """Return one node with its GPUs and its runs.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self.get(f"/api/v1/nodes/{quote(node, safe='')}")

    def backup(self, path: Path) -> int:
        """Write a consistent copy of the collector's database to a new file; return its bytes.

        Raises:
            CollectorError: no answer; see its subclasses.
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

    def acknowledge(self, incident: str, author: str) -> dict[str, Any]:
        """Record who took charge of an incident; return it as it now reads.

        Raises:
            CollectorError: not recorded; see its subclasses.
        """
        path = f"/api/v1/incidents/{quote(incident, safe='')}/ack"
        return self.post(path, {"author": author})

    def postmortem(self, incident: str) -> dict[str, Any]:
        """Return all that is known of one incident, as its post-mortem tells it.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self.get(f"/api/v1/incidents/{quote(incident, safe='')}/postmortem")

    def correct(
        self, incident: str, cause: str, author: str, reason: str | None = None
    ) -> dict[str, Any]:
        """Record the cause that a person gives an incident; return it as it now reads.

        Raises:
            CollectorError: not recorded; see its subclasses.
        """
        said = {"cause": cause, "author": author, "reason": reason}
        return self.post(f"/api/v1/incidents/{quote(incident, safe='')}/cause", said)

    def changed(self, path: str, query: Mapping[str, Any], version: str | None) -> Change:
        """Return an answer, or that `version` is still that of the answer.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        known = {} if version is None else {"If-None-Match": version}
        response = self._send("GET", path, _given(query), None, known)
        told = response.headers.get(AS_OF)
        same = response.status_code == httpx.codes.NOT_MODIFIED
        return Change(
            content=None if same else self._answer(path, response),
            version=response.headers.get("etag"),
            as_of=None if told is None else int(told),
        )

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer of an endpoint.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self._answer(path, self._send("GET", path, query, None))

    def post(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Order something of an endpoint; return its answer.

        Raises:
            CollectorError: not done; see its subclasses.
        """
        return self._answer(path, self._send("POST", path, None, content))

    def _all(
        self, path: str, name: str, filters: Mapping[str, Any], page: int = _ITEMS_AT_ONCE
    ) -> list[dict[str, Any]]:
        """Return the items of all pages."""
        query = _given({"limit": page, **filters})
        found: list[dict[str, Any]] = []
        while True:
            answer = self.get(path, query)
            found += answer[name]
            if answer.get("next") is None:
                return found
            query["cursor"] = answer["next"]

    def _table(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        content: Mapping[str, Any] | None,
    ) -> "pyarrow.Table":
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
        """Return the answer to one request.

        Raises:
            CollectorError: nobody answers, or with an error.
        """
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


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
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
