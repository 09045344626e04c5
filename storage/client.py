"""Client of the collector's read API, for the dashboard and the command line."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from headway.storage.connection import Connection, given

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]  # ships no types

_EVENTS_AT_ONCE = 10_000
_STEPS_AT_ONCE = 1_000_000


class CollectorClient(Connection):
    """Typed access to the collector's read API; runs go by their id or their name."""

    def runs(self, **filters: Any) -> list[dict[str, Any]]:
        """Return the summary of every run, the newest first; filters as the API declares them."""
        return self.all("/api/v1/runs", "runs", filters)

    def fleet(self, by: str | None = None, **filters: Any) -> dict[str, Any]:
        """Return the totals of all runs together, by the values of a label if one is named."""
        return self.get("/api/v1/fleet", given(filters | {"by": by}))

    def health(self) -> dict[str, Any]:
        """Return how the collector is."""
        return self.get("/api/v1/health")

    def report(self, run: str) -> dict[str, Any]:
        """Return the report of a run, by its id or its name."""
        return self.get(f"/api/v1/runs/{quote(run, safe='')}/report")

    def intervals(self, run: str) -> list[dict[str, Any]]:
        """Return the ledger's intervals of a run, by its id or its name."""
        return list(self.get(f"/api/v1/runs/{quote(run, safe='')}/intervals")["intervals"])

    def steps(self, run: str, points: int = 2000) -> list[dict[str, Any]]:
        """Return the step curve of a run, thinned to about `points`."""
        path = f"/api/v1/runs/{quote(run, safe='')}/steps"
        return list(self.get(path, {"points": points})["points"])

    def window(
        self, run: str, start: int | None, end: int | None, excluded: Sequence[tuple[int, int]] = ()
    ) -> dict[str, Any]:
        """Return the ledger of a run between two times in UTC ns; None is its own begin or end."""
        query: dict[str, int | str | list[str]] = {
            name: value for name, value in (("start", start), ("end", end)) if value is not None
        }
        query["exclude"] = [f"{first}-{last}" for first, last in excluded]
        return self.get(f"/api/v1/runs/{quote(run, safe='')}/window", query)

    def comparison(self, **asked: Any) -> dict[str, Any]:
        """Return two sides beside each other; parameters as the API declares them."""
        return self.get("/api/v1/comparison", given(asked))

    def events(self, **filters: Any) -> list[dict[str, Any]]:
        """Return stored events in order of their time; filters as the API declares them."""
        return self.all("/api/v1/events", "events", filters, page=_EVENTS_AT_ONCE)

    def step_records(
        self, run: str, first: int = 1, last: int | None = None, rank: int | None = None
    ) -> "pyarrow.Table":
        """Return what was measured of each completed step of a run."""
        import pyarrow  # only where an answer in columns is wanted

        path = f"/api/v1/runs/{quote(run, safe='')}/step_records"
        query = given({"first": first, "last": last, "rank": rank, "limit": _STEPS_AT_ONCE})
        tables = []
        while True:
            tables.append(self.table("GET", path, query, None))
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
        """
        asked = {"sql": statement, "limit": limit, "parameters": parameters or None}
        return self.post("/api/v1/sql", given(asked | {"counted": 1 if counted else None}))

    def sql_table(
        self,
        statement: str,
        limit: int | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> "pyarrow.Table":
        """Return the answer to `sql` in columns; its metadata says if rows are missing."""
        asked = {"sql": statement, "limit": limit, "parameters": parameters or None}
        return self.table("POST", "/api/v1/sql", None, given(asked))

    def questions(self) -> list[dict[str, Any]]:
        """Return every saved question with its parameters and its SQL."""
        return list(self.get("/api/v1/questions")["questions"])

    def question(
        self, name: str, parameters: Mapping[str, Any] | None = None, limit: int | None = None
    ) -> dict[str, Any]:
        """Return the answer to a saved question, with values for its parameters."""
        pairs = [f"{one}={value}" for one, value in given(parameters or {}).items()]
        path = f"/api/v1/questions/{quote(name, safe='')}"
        return self.get(path, given({"parameter": pairs, "limit": limit}))

    def views(self) -> list[dict[str, Any]]:
        """Return what SQL can read, with the columns and what they say."""
        return list(self.get("/api/v1/views")["views"])

    def incidents(self, run: str | None = None, **filters: Any) -> list[dict[str, Any]]:
        """Return the incidents of a run, or of all runs, the newest first; filters as the API's."""
        return self.all("/api/v1/incidents", "incidents", filters | {"run": run})

    def incident(self, incident: str) -> dict[str, Any]:
        """Return one incident by its identity."""
        return self.get(f"/api/v1/incidents/{quote(incident, safe='')}")

    def notes(self, **filters: Any) -> list[dict[str, Any]]:
        """Return what people said, the newest first; filters as the API declares them."""
        return self.all("/api/v1/notes", "notes", filters)

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
        """Record a note, or labels; return all that was said about the same."""
        said = {"about": about, "subject": subject, "author": author, "text": text}
        changed = {"label": list(labels), "remove_label": list(labels_removed)}
        return self.post("/api/v1/notes", given(said | changed))

    def results(self, **filters: Any) -> list[dict[str, Any]]:
        """Return attached results, the newest first; filters as the API declares them."""
        return self.all("/api/v1/results", "results", filters)

    def attach(self, title: str, content: str, author: str, **to: Any) -> dict[str, Any]:
        """Keep a result with the configuration named by `run` and `attempt`, or `configuration`."""
        said = {"title": title, "content": content, "author": author, **to}
        return dict(self.post("/api/v1/results", given(said))["result"])

    def search(self, words: str, **filters: Any) -> dict[str, Any]:
        """Return what was noted, seen and configured; filters as the API declares them."""
        return self.get("/api/v1/search", given(filters | {"words": words}))

    def access(self) -> dict[str, Any]:
        """Return what the token of this client allows, and the collector's version."""
        return self.get("/api/v1/access")

    def nodes(self) -> dict[str, Any]:
        """Return every node, the one that fails most first, and the rate of the fleet."""
        return self.get("/api/v1/nodes")

    def node(self, node: str) -> dict[str, Any]:
        """Return one node with its GPUs and its runs."""
        return self.get(f"/api/v1/nodes/{quote(node, safe='')}")

    def acknowledge(self, incident: str, author: str) -> dict[str, Any]:
        """Record who took charge of an incident; return it as it now reads."""
        path = f"/api/v1/incidents/{quote(incident, safe='')}/ack"
        return self.post(path, {"author": author})

    def postmortem(self, incident: str) -> dict[str, Any]:
        """Return all that is known of one incident, as its post-mortem tells it."""
        return self.get(f"/api/v1/incidents/{quote(incident, safe='')}/postmortem")

    def correct(
        self, incident: str, cause: str, author: str, reason: str | None = None
    ) -> dict[str, Any]:
        """Record the cause that a person gives an incident; return it as it now reads."""
        said = {"cause": cause, "author": author, "reason": reason}
        return self.post(f"/api/v1/incidents/{quote(incident, safe='')}/cause", said)
