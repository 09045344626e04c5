"""Client of the collector's read API, for the dashboard and the command line.

Every error is one sentence with the next step, ready to be shown to a person.
"""

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx

from headway.settings import ClientSettings, SettingError


class CollectorError(RuntimeError):
    """The collector did not give the answer; `sentence` says why, `next_step` what to do."""

    def __init__(self, sentence: str, next_step: str) -> None:
        """Keep both parts for views that show them apart."""
        super().__init__(f"{sentence} {next_step}")
        self.sentence = sentence
        self.next_step = next_step


class CollectorUnreachable(CollectorError):  # noqa: N818  # the condition reads as a name
    """Nothing answers at the endpoint, or not in time."""


class UnknownRun(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector has no such run."""


class UnknownIncident(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector has no such incident."""


class UnknownNode(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector knows nothing of such a node."""


class CollectorRefused(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector answered with an error: wrong token, not ready, wrong request."""


class CollectorClient:
    """Typed access to the collector's read API."""

    def __init__(
        self, settings: ClientSettings, transport: httpx.BaseTransport | None = None
    ) -> None:
        """Make a client; nothing is sent before the first question."""
        headers = {} if settings.token is None else {"Authorization": f"Bearer {settings.token}"}
        self._endpoint = settings.endpoint.rstrip("/")
        verify: bool | ssl.SSLContext = True
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

    def runs(self) -> list[dict[str, Any]]:
        """Return the summary of every run, the newest first.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return list(self._get("/api/v1/runs")["runs"])

    def report(self, run: str) -> dict[str, Any]:
        """Return the report of a run, by its id or its name.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self._get(f"/api/v1/runs/{quote(run, safe='')}/report")

    def intervals(self, run: str) -> list[dict[str, Any]]:
        """Return the ledger's intervals of a run, by its id or its name.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return list(self._get(f"/api/v1/runs/{quote(run, safe='')}/intervals")["intervals"])

    def steps(self, run: str, points: int = 2000) -> list[dict[str, Any]]:
        """Return the step curve of a run, thinned to about `points`.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        path = f"/api/v1/runs/{quote(run, safe='')}/steps"
        return list(self._get(path, {"points": points})["points"])

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
        return self._get(f"/api/v1/runs/{quote(run, safe='')}/window", query)

    def incidents(self, run: str | None = None) -> list[dict[str, Any]]:
        """Return the incidents of a run, or of all runs, the newest first.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return list(
            self._get("/api/v1/incidents", {} if run is None else {"run": run})["incidents"]
        )

    def incident(self, incident: str) -> dict[str, Any]:
        """Return one incident by its identity.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self._get(f"/api/v1/incidents/{quote(incident, safe='')}")

    def nodes(self) -> dict[str, Any]:
        """Return every node, the one that fails most first, and the rate of the fleet.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self._get("/api/v1/nodes")

    def node(self, node: str) -> dict[str, Any]:
        """Return one node with its GPUs and its runs.

        Raises:
            CollectorError: no answer; see its subclasses.
        """
        return self._get(f"/api/v1/nodes/{quote(node, safe='')}")

    def acknowledge(self, incident: str, author: str) -> dict[str, Any]:
        """Record who took charge of an incident; return it as it now reads.

        Raises:
            CollectorError: not recorded; see its subclasses.
        """
        path = f"/api/v1/incidents/{quote(incident, safe='')}/ack"
        return self._post(path, {"author": author})

    def correct(
        self, incident: str, cause: str, author: str, reason: str | None = None
    ) -> dict[str, Any]:
        """Record the cause that a person gives an incident; return it as it now reads.

        Raises:
            CollectorError: not recorded; see its subclasses.
        """
        said = {"cause": cause, "author": author, "reason": reason}
        return self._post(f"/api/v1/incidents/{quote(incident, safe='')}/cause", said)

    def _get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._ask("GET", path, query, None)

    def _post(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        return self._ask("POST", path, None, content)

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        content: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        try:
            response = self._http.request(method, path, params=query, json=content)
        except httpx.HTTPError as error:
            raise CollectorUnreachable(
                f"No collector answers at {self._endpoint} ({error}).",
                "Start one with `headway collect`, or set HEADWAY_ENDPOINT to its address.",
            ) from error
        answer = _object(response)
        if response.is_success and answer is not None:
            return answer
        if answer is None or "error" not in answer:
            raise CollectorUnreachable(
                f"What answers at {self._endpoint} is no Headway collector.",
                "Set HEADWAY_ENDPOINT to the collector's address.",
            )
        kind: type[CollectorError] = CollectorRefused
        if response.status_code == httpx.codes.NOT_FOUND:
            one_of = path.removeprefix("/api/v1/").rpartition("/")[0].partition("/")[0]
            kind = {"incidents": UnknownIncident, "nodes": UnknownNode}.get(one_of, UnknownRun)
        raise kind(str(answer["error"]), str(answer.get("next", "")))


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
