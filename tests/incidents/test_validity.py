"""A recovery is valid when what was executed again agrees with its first pass."""

from headway.incidents import incidents
from headway.ledger import ledger
from timeline import at, timeline


def recovered(first, again, before=""):
    text = f"""
    0      attempt A launcher world=1
    0-100  steps 1-100 {first}
    50     scheduled c50
    52     finalized c50
    101    exit signal=9
    {before}
    105    attempt B launcher world=1
    110    resumed 50 from=c50
    110-200 steps 51-140 {again}
    """
    (incident,) = incidents(ledger(timeline(text), at(200)))
    return incident.validity


def test_equal_losses_and_samples_are_valid():
    found = recovered("loss=2 samples=8", "loss=2.01 samples=8")
    assert found.valid == "yes"
    # the samples of step 50, and 50 steps that were executed twice
    assert found.compared == 51


def test_another_loss_is_not():
    found = recovered("loss=2 samples=8", "loss=2.2 samples=8")
    assert found.valid == "no"
    assert "step 51" in found.reason


def test_a_loss_that_is_not_comparable_is_unknown():
    assert recovered("loss=2", "samples=8").valid == "unknown"
    assert recovered("", "").valid == "unknown"


def test_samples_alone_are_enough_to_agree():
    assert recovered("samples=8", "samples=8").valid == "yes"


def test_other_samples_are_invalid():
    found = recovered("samples=8", "samples=8 seen=80")
    assert found.valid == "no"
    assert found.reason == "rank 0 consumed 488 samples up to step 51, 408 in the first pass"


def test_the_first_pass_is_the_newest_one_before_the_fault():
    text = """
    0      attempt A launcher world=1
    0-100  steps 1-100 loss=2
    50     scheduled c50
    52     finalized c50
    101    exit signal=9
    105    attempt B launcher world=1
    110    resumed 50 from=c50
    110-180 steps 51-120 loss=3
    181    exit signal=9
    185    attempt C launcher world=1
    190    resumed 50 from=c50
    190-280 steps 51-140 loss=3
    """
    first, second = incidents(ledger(timeline(text), at(280)))
    assert (first.validity.valid, second.validity.valid) == ("no", "yes")


def test_a_group_of_another_size_cannot_be_compared():
    text = """
    0      attempt A launcher world=2 rank=0..1
    0-100  steps 1-100 loss=2 rank=0..1
    101    exit signal=9 rank=0..1
    105    attempt B launcher world=1
    110    resumed 50
    110-200 steps 51-140 loss=3
    """
    (incident,) = incidents(ledger(timeline(text), at(200)))
    assert incident.validity.valid == "unknown"
