"""What the ledger of a text timeline says, in seconds."""

from headway.ledger import Ledger, ledger
from timeline import SECOND, at, timeline


def book(text: str, as_of: float) -> Ledger:
    """Return the ledger of a timeline as known at one of its seconds."""
    found = ledger(timeline(text), at(as_of))
    assert sum(found.categories.values()) == found.elapsed
    return found


def spent(text: str, as_of: float) -> dict[str, float]:
    """Return seconds per category, those with any."""
    amounts = book(text, as_of).categories.items()
    return {name: amount / SECOND for name, amount in amounts if amount}


def parts(text: str, as_of: float, category: str) -> dict[str, float]:
    """Return seconds per part of a category."""
    amounts = book(text, as_of).parts.get(category, {})
    return {name: amount / SECOND for name, amount in amounts.items()}
