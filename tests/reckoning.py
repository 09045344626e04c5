"""What the ledger of a text timeline says, and its report; amounts in seconds."""

from collections.abc import Mapping, Sequence
from typing import Any

from headway.ledger import Ledger, ledger
from headway.report import report
from timeline import SECOND, at, timeline


def book(text: str, as_of: float) -> Ledger:
    """Return the ledger of a timeline as known at one of its seconds."""
    found = ledger(timeline(text), at(as_of))
    assert sum(found.categories.values()) == found.elapsed
    return found


def told(text: str, as_of: float) -> dict[str, Any]:
    """Return the report on a timeline as known at one of its seconds."""
    return report(book(text, as_of))


def in_seconds(amounts: Mapping[str, int]) -> dict[str, float]:
    """Return amounts of ns in seconds, those with any."""
    return {name: amount / SECOND for name, amount in amounts.items() if amount}


def spent(text: str, as_of: float, parts: Sequence[str] = ()) -> dict[str, float]:
    """Return seconds per category, those with any, and of each named part `category/part`."""
    found = book(text, as_of)
    amounts = in_seconds(found.categories)
    for name in parts:
        category, part = name.split("/")
        amounts[name] = found.parts.get(category, {}).get(part, 0) / SECOND
    return amounts


def parts(text: str, as_of: float, category: str) -> dict[str, float]:
    """Return seconds per part of a category."""
    amounts = book(text, as_of).parts.get(category, {})
    return {name: amount / SECOND for name, amount in amounts.items()}
