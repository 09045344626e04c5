"""A restart below what counted as durable is told, not taken for a clean one."""

from headway.incidents import incidents
from headway.ledger import ledger
from timeline import at, timeline

SAVED = """
0      attempt A launcher world=1
0-100  steps 1-100
50     scheduled c50
52     finalized c50
90     scheduled c90
95     finalized c90
101    exit signal=9
105    attempt B launcher world=1
"""


def warnings(text, until=200):
    (incident,) = incidents(ledger(timeline(SAVED + text), at(until)))
    return incident.warnings


def test_a_resume_from_the_newest_durable_checkpoint_is_fine():
    assert warnings("110 resumed 90 from=c90\n110-200 steps 91-180") == ()


def test_a_resume_below_it_is_told():
    assert warnings("110 resumed 50 from=c50\n110-200 steps 51-140") == (
        "resumed at step 50, below checkpoint 'c90' of step 90",
    )


def test_a_restart_from_scratch_names_what_was_asked_for():
    found = warnings("110 resumed 0 requested=c90\n110-290 steps 1-180", 290)
    assert found[0] == "restarted from scratch although 'c90' was asked for"


def test_a_checkpoint_only_in_memory_may_be_lost():
    text = SAVED.replace("95     finalized c90", "95 finalized c90 tier=memory")
    text += "110 resumed 50 from=c50\n110-200 steps 51-140"
    (incident,) = incidents(ledger(timeline(text), at(200)))
    assert incident.warnings == ()


def test_the_newest_checkpoint_is_that_of_the_lineage_at_the_fault():
    text = """
    0      attempt A launcher world=1
    0-100  steps 1-100
    30     scheduled c30
    32     finalized c30
    50     scheduled c50
    52     finalized c50
    90     scheduled c90
    95     finalized c90
    101    exit signal=9
    105    attempt B launcher world=1
    110    resumed 50 from=c50
    110-140 steps 51-80
    130    scheduled c70
    133    finalized c70
    141    exit signal=9
    150    attempt C launcher world=1
    155    resumed 30 from=c30
    155-255 steps 31-130
    """
    _, second = incidents(ledger(timeline(text), at(255)))
    assert second.warnings == ("resumed at step 30, below checkpoint 'c70' of step 70",)


def test_steps_of_a_lineage_given_up_long_ago_are_not_missed():
    text = """
    0      attempt A launcher world=1
    0-100  steps 1-100
    50     scheduled c50
    52     finalized c50
    90     scheduled c90
    95     finalized c90
    101    exit signal=9
    105    attempt B launcher world=1
    110    resumed 50 from=c50
    110-140 steps 51-80
    130    scheduled c70
    133    finalized c70
    141    exit signal=9
    150    attempt C launcher world=1
    155    resumed 70 from=c70
    155-255 steps 71-170
    """
    first, second = incidents(ledger(timeline(text), at(255)))
    assert first.warnings
    assert second.warnings == ()
