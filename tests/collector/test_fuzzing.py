"""Damaged requests are taken or refused cleanly; `scripts/fuzz` tries a million."""

from fuzzing.decoders import fuzz
from fuzzing.inputs import make


def test_thousands_of_damaged_requests_do_no_harm() -> None:
    found = fuzz(0, 5000)
    assert found["failures"] == []
    assert set(found["outcomes"]) >= {"taken", "quarantined", "refused", "MalformedRequest"}


def test_an_input_can_be_made_again() -> None:
    assert make(7) == make(7) != make(8)
