"""A person's word counts and the rule's verdict stays beside it."""

from headway.incidents import incidents, restarts
from headway.ledger import ledger
from timeline import at, timeline

BROKEN = """
0      attempt A launcher world=1
0-100  steps 1-100
100.5  fault exception exception=RuntimeError message="CUDA error"
101    exit code=1
105    attempt B launcher world=1
"""


def said(text, until=200):
    (before,) = incidents(ledger(timeline(BROKEN), at(150)))
    book = ledger(timeline(BROKEN + text.replace("ID", before.incident)), at(until))
    (incident,) = incidents(book)
    return book, incident


def test_the_newest_correction_counts_and_the_original_stays():
    book, incident = said(
        "160 corrected ID network by=Ada\n170 corrected ID gpu_fault by=Grace reason='Xid 79'"
    )
    assert (incident.cause, incident.original_cause) == ("gpu_fault", "exception")
    assert incident.rule == "first fault"
    judgement = incident.judgement
    assert (judgement.author, judgement.reason, judgement.time) == ("Grace", "Xid 79", at(170))
    assert restarts(book, [incident]) == {"launcher": {"gpu_fault": 1}}


def test_a_correction_is_not_known_before_it_was_made():
    _, incident = said("160 corrected ID network by=Ada", until=155)
    assert (incident.cause, incident.judgement.author) == ("exception", None)


def test_an_acknowledgement_changes_nothing_else():
    _, incident = said("160 acknowledged ID by=Ada")
    assert incident.judgement.acknowledged_by == "Ada"
    assert incident.judgement.acknowledged_at == at(160)
    assert (incident.cause, incident.judgement.author) == ("exception", None)


def test_a_correction_of_another_incident_changes_nothing():
    _, incident = said("160 corrected 0123456789ab network by=Ada")
    assert incident.cause == "exception"
