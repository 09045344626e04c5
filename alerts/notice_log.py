"""What was told about a subject and what became of it, as the book of alerting keeps it."""

from collections.abc import Mapping, Sequence
from typing import Any

from headway.alerts.engine import notice_of
from headway.alerts.payloads import headline
from headway.storage.alert_book import AlertBook


class NoticeLog:
    """Reads the notices of a book, also of one at which no engine works any more."""

    def __init__(self, book: AlertBook) -> None:
        """Read a book that others open and close."""
        self._book = book

    def newest(self, limit: int, before: int | None) -> list[dict[str, Any]]:
        """Return the newest notices with what became of each."""
        return [_told(row) for row in self._book.deliveries(limit, before)]

    def told(self, subjects: Sequence[str], since: float, until: float) -> list[dict[str, Any]]:
        """Return the notices about subjects that were made between two times, the oldest first.

        Times are seconds UTC. Each says who had taken its group: by now where that still fires,
        else when it was told of last.
        """
        taken: dict[str, tuple[str | None, float | None]] = {}
        rows = self._book.about(subjects, since, until)
        for row in (*(row["body"] for row in rows), *self._book.groups()):
            if row.get("acknowledged_by") is not None:
                taken[row["key"]] = row["acknowledged_by"], row["acknowledged_at"]
        found = []
        for row in rows:
            by, at = taken.get(row["key"], (None, None))
            found.append({**_told(row), "acknowledged_by": by, "acknowledged_at": at})
        return found


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    body = row["body"]
    shown = {name: row[name] for name in row if name != "body"}
    words = {name: body[name] for name in ("status", "severity", "why")}
    return {**shown, **words, "headline": headline(notice_of(body))}
