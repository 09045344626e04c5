"""Checkpoints that other tools took for whole, or for the newest."""

from reckoning import told


# A19: huggingface/transformers#35782
def test_an_incomplete_newest_checkpoint_counts_for_nothing():
    text = """
    0      attempt A launcher world=1
    0-250  steps 1-250
    100    scheduled c100
    105    finalized c100
    200    scheduled c200
    251    exit signal=9
    """
    before = told(text, 251)
    assert (before["checkpoint"]["checkpoint"], before["steps_at_risk"]) == ("c100", 150)
    after = told(
        text + "260 attempt B launcher world=1\n261 resumed 100 from=c100\n261-300 steps 101-139",
        300,
    )
    assert after["rollbacks"][0]["steps"] == 150


# A21: tdrussell/diffusion-pipe#159
def test_after_a_power_loss_the_empty_newest_checkpoints_are_revoked():
    found = told(
        """
        0      attempt A launcher world=1
        0-450  steps 1-450
        100    scheduled c100
        101    finalized c100
        200    scheduled c200
        201    finalized c200
        300    scheduled c300
        301    finalized c300
        400    scheduled c400
        401    finalized c400
        1000   attempt B launcher world=1
        1010   load_failed c400
        1011   load_failed c300
        1020   resumed 200 from=c200
        1020-1100 steps 201-280
        """,
        1100,
    )
    (one,) = found["incidents"]
    assert one["rollback_steps"] == 250
    assert found["checkpoint"]["checkpoint"] == "c200"
    states = {save["checkpoint"]: save["state"] for save in found["checkpoints"]}
    assert (states["c300"], states["c400"]) == ("revoked", "revoked")
    assert one["warnings"] == ["resumed at step 200, below checkpoint 'c400' of step 400"]


# A22: pytorch/torchtitan#1311
def test_a_checkpoint_that_is_not_found_is_a_restart_from_scratch_and_warns():
    found = told(
        """
        0      attempt A launcher world=1
        0-200  steps 1-200
        100    scheduled c100
        101    finalized c100
        201    exit signal=9
        210    attempt B launcher world=1
        215    resumed 0 requested=c100
        215-300 steps 1-85
        """,
        300,
    )
    (one,) = found["incidents"]
    assert one["rollback_steps"] == 200
    assert one["warnings"][0] == "restarted from scratch although 'c100' was asked for"
