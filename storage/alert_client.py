"""What the command line and the dashboard ask of a collector's alerting, and order there.

Times are those of the API: seconds UTC in answers, ns UTC in questions.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from headway.storage.client import CollectorClient

_ALERTS = "/api/v1/alerts"


class AlertClient:
    """Typed access to a collector's alerting; each call raises `CollectorError` as the client."""

    def __init__(self, client: CollectorClient) -> None:
        """Ask through a client of the collector."""
        self._client = client

    def state(self) -> dict[str, Any]:
        """Return what fires, is pending or hidden, and what was told of it."""
        return self._client.get(_ALERTS)

    def rules(self) -> list[dict[str, Any]]:
        """Return the rules as the site has them."""
        return list(self._client.get(f"{_ALERTS}/rules")["rules"])

    def values(self, rule: str) -> list[dict[str, Any]]:
        """Return what a rule compares now, of each series that there is."""
        return list(self._client.get(f"{_ALERTS}/rules/{quote(rule, safe='')}/values")["values"])

    def deliveries(self, limit: int = 100, before: int | None = None) -> dict[str, Any]:
        """Return the newest notices with what became of each, before a number if one is given."""
        query = {"limit": limit} if before is None else {"limit": limit, "before": before}
        return self._client.get(f"{_ALERTS}/deliveries", query)

    def silences(self) -> list[dict[str, Any]]:
        """Return every silence, the newest first."""
        return list(self._client.get(f"{_ALERTS}/silences")["silences"])

    def silence(
        self,
        matchers: Sequence[str],
        author: str,
        reason: str,
        until: int,
        since: int | None = None,
    ) -> dict[str, Any]:
        """Keep alerts quiet between two times; return the silence."""
        asked = {"matchers": list(matchers), "author": author, "reason": reason, "until": until}
        return self._client.post(
            f"{_ALERTS}/silences", asked if since is None else {**asked, "since": since}
        )

    def end_silence(self, silence: int, author: str) -> None:
        """End a silence now."""
        self._client.post(f"{_ALERTS}/silences/{silence}/end", {"author": author})

    def acknowledge(self, key: str, author: str) -> None:
        """Take what was told under a key."""
        self._client.post(f"{_ALERTS}/acknowledge", {"key": key, "author": author})

    def route(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return whom an alert with these labels would reach, and why."""
        return list(self._client.post(f"{_ALERTS}/route", {"labels": dict(labels)})["ways"])

    def test(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Send a test to whom these labels lead; return these."""
        return list(self._client.post(f"{_ALERTS}/test", {"labels": dict(labels)})["notices"])
