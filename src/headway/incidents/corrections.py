"""What people said about incidents; the newest word counts, the rule's verdict stays beside it."""

from dataclasses import replace

from headway.events import IncidentAcknowledged, IncidentCorrected
from headway.incidents.model import Judgement
from headway.ledger import Ledger


def judgements(ledger: Ledger) -> dict[str, Judgement]:
    """Return the newest correction and acknowledgement of each incident by its identity."""
    found: dict[str, Judgement] = {}
    for fact in ledger.book.facts:
        if fact.time > ledger.as_of:
            continue
        record = fact.envelope.event
        if isinstance(record, IncidentCorrected):
            found[record.incident] = replace(
                found.get(record.incident, Judgement()),
                cause=record.cause,
                author=record.author,
                time=fact.time,
                reason=record.reason,
            )
        elif isinstance(record, IncidentAcknowledged):
            found[record.incident] = replace(
                found.get(record.incident, Judgement()),
                acknowledged_by=record.author,
                acknowledged_at=fact.time,
            )
    return found
