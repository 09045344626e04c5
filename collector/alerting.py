"""What the collector needs of alerting, which is built beside it and handed over at its start."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class NoticeLog(Protocol):
    """What was told about something, as it is on record."""

    def told(self, subjects: Sequence[str], since: float, until: float) -> list[dict[str, Any]]:
        """Return the notices about subjects between two times, and who took what they tell.

        Raises:
            BookError: what alerting keeps cannot be read.
        """


class Alerting(NoticeLog, Protocol):
    """Alerting as the API asks it; every answer is JSON values, times in seconds UTC.

    What needs the file that alerting keeps raises `BookError` where that cannot be used.
    """

    def start(self) -> None:
        """Begin to work."""

    def stop(self) -> None:
        """End; what was decided is written down."""

    def look(self) -> None:
        """Look now, beside the looks at their interval."""

    def state(self) -> dict[str, Any]:
        """Return what fires, is pending or hidden, and what was told of it."""

    def rules(self) -> list[dict[str, Any]]:
        """Return the rules as the site has them."""

    def values(self, rule: str) -> list[dict[str, Any]] | None:
        """Return what a rule compares now, of each series that there is; None if it is none."""

    def route(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return whom an alert with these labels would reach, and why."""

    def silences(self) -> list[dict[str, Any]]:
        """Return every silence, the newest first."""

    def silence(
        self, matchers: Sequence[str], owner: str, reason: str, begins: float | None, ends: float
    ) -> dict[str, Any]:
        """Keep alerts quiet for a time.

        Raises:
            ValueError: a matcher that is none, or a time that has passed.
        """

    def end_silence(self, silence: int) -> bool:
        """End a silence now; return whether there is one of this number."""

    def acknowledge(self, key: str, by: str) -> bool:
        """Let somebody take what was told under a key; return whether it still fires."""

    def deliveries(self, limit: int, before: int | None) -> list[dict[str, Any]]:
        """Return the newest notices with what became of each."""

    def waits(self) -> dict[str, float]:
        """Return for how long each receiver has not taken the oldest notice for it, in seconds."""

    def failure(self) -> str | None:
        """Return why what alerting keeps could not be read or written, None where it could."""

    def test(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Send a notice that says that it is a test, to whom labels lead; return these.

        Raises:
            ValueError: an Alertmanager that does not take it.
        """
