"""The ledger and the naive one agree to the nanosecond on thousands of random runs."""

import pytest

from oracle.comparison import disagreements
from oracle.random_timelines import random_as_of, random_run

FAST = 150
SLICES = 20
SLICE = 100


def compare(seeds):
    told = {}
    for seed in seeds:
        envelopes = random_run(seed)
        found = disagreements(envelopes, random_as_of(seed, envelopes), seed)
        if found:
            told[seed] = found
    return told


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, FAST, 50))
def test_both_ledgers_agree_on_some_random_runs(start):
    assert compare(range(start, start + 50)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("start", range(FAST, FAST + SLICES * SLICE, SLICE))
def test_both_ledgers_agree_on_thousands_of_random_runs(start):
    assert compare(range(start, start + SLICE)) == {}
