"""What a receiver of alerts heard so far, and waits for what it is to hear."""

from collections.abc import Mapping, Sequence
from typing import Any

from alert_receiver import AlertReceiver

PATIENCE = 300.0
EVENTS = "/v2/enqueue"
"""Path of PagerDuty's events; the others take webhooks."""
Taken = tuple[str, dict[str, str], Any]
"""Path, headers and body of what a receiver took."""


def names(body: Mapping[str, Any]) -> set[str]:
    """Return the rules that a webhook's notice says fire."""
    return {one["labels"]["alertname"] for one in body["alerts"] if one["status"] == "firing"}


def heard(receiver: AlertReceiver, path: str, rules: set[str]) -> None:
    """Wait for a notice by which all these rules fire."""

    def come() -> bool:
        return any(rules <= names(body) for body in at(path, receiver.taken))

    receiver.once(come, f"{sorted(rules)} at {path}", PATIENCE)


def over(receiver: AlertReceiver, path: str) -> None:
    """Wait for the notice of the end."""
    field, word = ("event_action", "resolve") if path == EVENTS else ("status", "resolved")

    def come() -> bool:
        return any(body[field] == word for body in at(path, receiver.taken))

    receiver.once(come, f"the end at {path}", PATIENCE)


def more(receiver: AlertReceiver) -> None:
    """Wait for one notice more than there were."""
    before = len(receiver.taken)
    receiver.once(lambda: len(receiver.taken) > before, "what still fires", PATIENCE)


def at(path: str, taken: Sequence[Taken]) -> list[Any]:
    """Return the bodies that came at a path, in their order."""
    return [body for place, _, body in taken if place == path]
