"""Stalls that other tools took for training, and ranks that they did not name."""

from reckoning import in_seconds, told
from timeline import SECOND, at


# A2: pytorch/pytorch#76287
def test_an_agent_that_logs_for_eight_hours_after_a_node_crashed_hides_no_hang():
    text = """
    0        attempt A launcher world=8 rank=0..7
    0-1000   steps 1-1000 rank=0..7
    """ + "\n".join(f"{1000 + 600 * n} heartbeat rank=0..3 open=step" for n in range(1, 49))
    found = told(text, 29800)
    (one,) = found["incidents"]
    assert (one["cause"], one["state"], one["suspect_node"]) == ("hang", "open", "node-b")
    assert one["opened"] == at(1000)
    assert in_seconds(found["categories"]) == {"productive": 1000, "stalled": 28800}


# A4: pytorch/pytorch#146371
def test_a_rank_that_exits_while_the_others_keep_running_is_named():
    found = told(
        """
        0      attempt A launcher world=4 rank=0..3
        0-100  steps 1-100 rank=0..3
        101    exit rank=1 code=1
        100-400 steps 101-400 rank=0
        100-400 steps 101-400 rank=2..3
        """,
        400,
    )
    (one,) = found["incidents"]
    assert (one["suspect_rank"], one["state"]) == (1, "open")
    assert one["opened"] == at(101)
    assert found["categories"]["productive"] == 400 * SECOND


# A7: hiyouga/LlamaFactory#2902
def test_a_collective_timeout_is_dated_by_how_long_the_watchdog_waited():
    words = '"WorkNCCL(SeqNum={}, OpType=ALLREDUCE) ran for 600000 ms"'
    found = told(
        f"""
        0      attempt A launcher world=2 rank=0..1
        0-130  steps 1-13 rank=0..1
        130    phase step rank=0..1
        740    fault collective_timeout rank=0 ran_for=600 message={words.format(1516)}
        740.5  fault collective_timeout rank=1 ran_for=600 message={words.format(1517)}
        745    exit rank=0..1 signal=6
        """,
        745,
    )
    (one,) = found["incidents"]
    assert one["cause"] == "collective_timeout"
    assert one["opened"] == at(140)
    assert (
        "ranks out of step: rank 0 at collective 1516, rank 1 at collective 1517"
        in (one["evidence"])
    )
    assert (one["suspect_rank"], one["suspect_rule"]) == (
        0,
        "at collective 1516 while a peer is at 1517",
    )
    assert found["steps"]["highest"] == 13


# A8: meta-pytorch/torchtune#2093
def test_a_timeout_while_saving_is_of_that_phase_and_the_save_is_not_durable():
    found = told(
        """
        0      attempt A launcher world=2 rank=0..1
        0-200  steps 1-200 rank=0..1
        100    scheduled c100
        110    finalized c100
        200    phase checkpoint_save rank=0..1
        201    scheduled c200
        800    fault collective_timeout rank=0..1 ran_for=600
        801    exit rank=0..1 signal=6
        810    attempt B launcher world=2 rank=0..1
        820    resumed 100 from=c100 rank=0..1
        820-1000 steps 101-280 rank=0..1
        """,
        1000,
    )
    (one,) = found["incidents"]
    assert one["cause"] == "collective_timeout"
    assert {item["phase"] for item in one["observations"] if item["kind"] != "exit"} == {
        "checkpoint_save"
    }
    assert one["rollback_steps"] == 100
    states = {save["checkpoint"]: save["state"] for save in found["checkpoints"]}
    assert states == {"c100": "verified", "c200": "scheduled"}


# A20: NVIDIA-NeMo/Automodel#3261
def test_a_restore_that_hangs_is_a_recovery_that_is_not_over():
    text = """
    0      attempt A launcher world=2 rank=0..1
    0-100  steps 1-100 rank=0..1
    100    phase checkpoint_save rank=0..1
    101    exit rank=1 signal=9
    102    exit rank=0 signal=15 by=launcher
    110    attempt B launcher world=2 rank=0..1
    120    phase checkpoint_load rank=0..1
    {beat} heartbeat rank=0..1 open=checkpoint_load
    """
    early, late = told(text.format(beat=130), 140), told(text.format(beat=7000), 7000)
    for found in (early, late):
        (one,) = found["incidents"]
        assert (one["state"], one["recovered"], one["rollback_steps"]) == ("open", None, None)
        assert one["open_phase"] == {"phase": "checkpoint_load", "since": at(120), "rank": 0}
    assert late["incidents"][0]["phases"]["load"] == 6880 * SECOND
    assert late["recovery"]["all"]["recovered_ns"]["count"] == 0
